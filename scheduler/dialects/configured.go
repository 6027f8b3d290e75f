package dialects

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Row is a dialect as configuration says it: a mark by keys, and expressions (CEL) over the pod and the object that describes the gang.
//
//	name: volcano
//	member: {annotations: [scheduling.k8s.io/group-name]}
//	object: {resource: podgroups.v1beta1.scheduling.volcano.sh}
//	minimum: object.spec.minMember
//	rank: int(pod.metadata.labels["volcano.sh/task-index"])
type Row struct {
	// Name is that of the dialect: lower case letters, digits and hyphens.
	Name string `json:"name"`
	// Member lists the keys of marks: the first that a pod has names its group.
	Member Keys `json:"member"`
	// Group is an expression of type string over a pod that has one of the keys: its group's name. The default is the key's value; empty is no gang.
	Group string `json:"group,omitempty"`
	// Object describes the gang. Without one the expressions have the pod alone.
	Object *Object `json:"object,omitempty"`
	// Minimum is an expression of type int, at least 1: members that start together. Variables: pod, object if there is one.
	Minimum string `json:"minimum"`
	// Rank is an expression of type int over pod, from 0: its place in the gang. Where it fails, the pod has no rank.
	Rank string `json:"rank,omitempty"`
	// Wishes are expressions of type string by the annotations that they stand for. One that fails is no wish.
	Wishes map[string]string `json:"wishes,omitempty"`
	// OnLoss describes the gang's owner: after the loss of a member it creates the member again (replaced), creates all
	// members again (restarted), or does nothing (gone). The default is replaced for pods that a controller owns, and
	// gone for others. With gone, nothing evicts the gang's members.
	OnLoss Loss `json:"onLoss,omitempty"`
	// Status are expressions over gang by the fields of the object's status that they stand for: gang.minimum, scheduled, running, succeeded, failed, and
	// phase (Pending, Scheduling, Running, Finished or Failed). One that fails writes nothing. It needs an object.
	Status map[string]string `json:"status,omitempty"`
}

// Object is the kind of the objects that describe gangs.
type Object struct {
	// Resource is PLURAL.VERSION.GROUP, as kubectl takes it.
	Resource string `json:"resource"`
	// Name is an expression of type string over pod; the default is the group's name.
	Name string `json:"name,omitempty"`
}

// ErrRow indicates a row that is no dialect. The text names the field and the remedy.
var ErrRow = errors.New("not a dialect")

// cost limits one evaluation: a hundred times the cost of a row of this kind.
const cost = 100_000

// Configured returns the dialect of a row.
func Configured(row Row) (Dialect, error) {
	if faults := validation.IsDNS1123Label(row.Name); len(faults) > 0 {
		return Dialect{}, fmt.Errorf("name %q: %s: %w", row.Name, strings.Join(faults, ", "), ErrRow)
	}
	if len(row.Member.Labels)+len(row.Member.Annotations) == 0 {
		return Dialect{}, fmt.Errorf(
			"%s: member: name the labels or annotations that name a group: %w",
			row.Name,
			ErrRow,
		)
	}
	made := Dialect{Name: row.Name}
	for _, complete := range []func(Row, *Dialect) error{member, source, minimum, ranks, asks, loss, status} {
		if err := complete(row, &made); err != nil {
			return Dialect{}, fmt.Errorf("%s: %w", row.Name, err)
		}
	}
	return made, nil
}

func member(row Row, into *Dialect) error {
	into.Member, into.Row = row.Member, &row
	into.Group = row.Member.value
	if row.Group == "" {
		return nil
	}
	name, err := compile(row.Group, "group", cel.StringType, "pod")
	if err != nil {
		return err
	}
	into.Group = func(pod *corev1.Pod) string {
		if row.Member.value(pod) == "" {
			return ""
		}
		return text(name, pod)
	}
	return nil
}

// text evaluates an expression of type string over a pod; empty where it fails.
func text(of expression, pod *corev1.Pod) string {
	value, _ := of(pod, nil)
	text, _ := value.(string)
	return text
}

func loss(row Row, into *Dialect) error {
	switch row.OnLoss {
	case "":
		into.Loss = owned(nil)
	case Replaced, Restarted, Gone:
		into.Loss = func(*corev1.Pod) Loss { return row.OnLoss }
	default:
		return fmt.Errorf("onLoss %q: use %s, %s or %s: %w", row.OnLoss, Replaced, Restarted, Gone, ErrRow)
	}
	return nil
}

// resourceForm is PLURAL.VERSION.GROUP.
var resourceForm = regexp.MustCompile(`^([a-z0-9-]+)\.(v[0-9]+(?:(?:alpha|beta)[0-9]+)?)\.([a-z0-9.-]+)$`)

func source(row Row, into *Dialect) error {
	if row.Object == nil {
		return nil
	}
	parts := resourceForm.FindStringSubmatch(row.Object.Resource)
	if parts == nil {
		const says = "object.resource %q: write PLURAL.VERSION.GROUP, such as podgroups.v1beta1.scheduling.volcano.sh: %w"
		return fmt.Errorf(says, row.Object.Resource, ErrRow)
	}
	resource := schema.GroupVersionResource{Resource: parts[1], Version: parts[2], Group: parts[3]}
	named := into.Group
	if row.Object.Name != "" {
		name, err := compile(row.Object.Name, "object.name", cel.StringType, "pod")
		if err != nil {
			return err
		}
		named = func(pod *corev1.Pod) string { return text(name, pod) }
	}
	into.Source = func(pod *corev1.Pod) Source { return Source{resource, named(pod)} }
	return nil
}

// variables are those of expressions that may read the object.
func (row Row) variables() []string {
	if row.Object == nil {
		return []string{"pod"}
	}
	return []string{"pod", "object"}
}

func minimum(row Row, into *Dialect) error {
	if row.Minimum == "" {
		return fmt.Errorf("minimum: say how many members start together, such as object.spec.minMember: %w", ErrRow)
	}
	evaluate, err := compile(row.Minimum, "minimum", cel.IntType, row.variables()...)
	if err != nil {
		return err
	}
	into.Minimum = func(pod *corev1.Pod, object map[string]any) (int, error) {
		value, err := evaluate(pod, object)
		if err != nil {
			return 0, fmt.Errorf("%s: %w: %w", row.Minimum, err, ErrNoSize)
		}
		number := whole(value)
		if number < 1 {
			return 0, fmt.Errorf("%s is %v, and must be a positive whole number: %w", row.Minimum, value, ErrNoSize)
		}
		return number, nil
	}
	return nil
}

// whole returns a whole number, however it was decoded; -1 for any other value.
func whole(value any) int {
	switch number := value.(type) {
	case int64:
		return int(number)
	case float64:
		if number == math.Trunc(number) && math.Abs(number) <= maxMembers {
			return int(number)
		}
	}
	return -1
}

func ranks(row Row, into *Dialect) error {
	if row.Rank == "" {
		return nil
	}
	evaluate, err := compile(row.Rank, "rank", cel.IntType, "pod")
	if err != nil {
		return err
	}
	into.Rank = func(pod *corev1.Pod) (int, bool) {
		value, err := evaluate(pod, nil)
		number := whole(value)
		return number, err == nil && number >= 0 && number <= maxMembers
	}
	return nil
}

func asks(row Row, into *Dialect) error {
	wished := map[string]expression{}
	for key, text := range row.Wishes {
		if !slices.Contains(Wishes(), key) {
			return fmt.Errorf("wishes: %s is no wish; use one of %s: %w", key, strings.Join(Wishes(), ", "), ErrRow)
		}
		evaluate, err := compile(text, "wishes."+key, cel.StringType, row.variables()...)
		if err != nil {
			return err
		}
		wished[key] = evaluate
	}
	into.Wishes = func(pod *corev1.Pod, object map[string]any) map[string]string {
		asked := map[string]string{}
		for key, evaluate := range wished {
			value, err := evaluate(pod, object)
			if text, ok := value.(string); err == nil && ok && text != "" {
				asked[key] = text
			}
		}
		return asked
	}
	return nil
}

func status(row Row, into *Dialect) error {
	if len(row.Status) == 0 {
		return nil
	}
	if row.Object == nil {
		return fmt.Errorf("status: name the object that has it (object.resource): %w", ErrRow)
	}
	said := map[string]evaluation{}
	for field, text := range row.Status {
		if !fieldForm.MatchString(field) {
			return fmt.Errorf("status: %q is no field; write one such as phase: %w", field, ErrRow)
		}
		evaluate, err := compiled(text, "status."+field, nil, "gang")
		if err != nil {
			return err
		}
		said[field] = evaluate
	}
	into.Status = func(gang Standing) map[string]any {
		status := map[string]any{}
		for field, evaluate := range said {
			switch value, err := evaluate(map[string]any{"gang": gang.values()}); value := value.(type) {
			case string, int64, float64, bool:
				if err == nil {
					status[field] = value
				}
			}
		}
		return status
	}
	return nil
}

// fieldForm is a field of a status.
var fieldForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*$`)
