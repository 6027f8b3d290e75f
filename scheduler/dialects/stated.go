package dialects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// PodGroups of marks state by annotations how the scheduler read them: explanations and snapshots read the same marks without its configuration.
const (
	// AnnotationDialect names the dialect.
	AnnotationDialect = "lockstep.dev/dialect"
	// AnnotationRow is the row of a configured dialect, as JSON.
	AnnotationRow = "lockstep.dev/dialect-row"
	// AnnotationSchedulers lists the schedulerNames of the scheduler, separated by commas, if it has several.
	AnnotationSchedulers = "lockstep.dev/schedulers"
)

// Annotations returns the annotations by which the PodGroup of a mark states its reading.
func (r *Reader) Annotations(of Mark) (map[string]string, error) {
	stated := map[string]string{AnnotationDialect: of.Dialect.Name}
	if row := of.Dialect.Row; row != nil {
		text, err := json.Marshal(row)
		if err != nil {
			return nil, fmt.Errorf("encoding dialect %s: %w", row.Name, err)
		}
		stated[AnnotationRow] = string(text)
	}
	names := []string{r.schedulers[0]}
	for _, alias := range slices.Sorted(maps.Keys(r.aliases)) {
		if r.aliases[alias] == names[0] {
			names = append(names, alias)
		}
	}
	if len(names) > 1 {
		stated[AnnotationSchedulers] = strings.Join(names, ",")
	}
	return stated, nil
}

// Stated returns a reader of the marks of a namespace's pods, as its PodGroups state them. A PodGroup's statement
// counts for its namespace only: its users can write it.
func Stated(scheduler string, groups []*schedulingv1beta1.PodGroup) *Reader {
	explicit, owners := Builtin()
	aliases := make(map[string]string)
	byName := func(a, b *schedulingv1beta1.PodGroup) int { return cmp.Compare(a.Name, b.Name) }
	for _, group := range slices.SortedFunc(slices.Values(groups), byName) {
		if group.Annotations[AnnotationDialect] == native && explicit[0].Name != native {
			explicit = slices.Concat(Table{Native(NativeVersions()[0])}, explicit)
		}
		if all := strings.Split(group.Annotations[AnnotationSchedulers], ","); all[0] == scheduler {
			for _, alias := range all[1:] {
				aliases[alias] = scheduler
			}
		}
		var row Row
		if json.Unmarshal([]byte(group.Annotations[AnnotationRow]), &row) != nil {
			continue // it states none, or a snapshot is anonymized
		}
		if _, known := slices.Concat(explicit, owners).ByName(row.Name); known {
			continue
		}
		if dialect, err := Configured(row); err == nil {
			explicit = append(explicit, dialect)
		}
	}
	return NewReader(slices.Concat(explicit, owners), []string{scheduler}, aliases)
}
