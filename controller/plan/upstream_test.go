package plan_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/plan/cases"
)

// TestUpstream compares, for each case, our rendering without gangs with that of Kubeflow Trainer 2.3.0. make
// generate-conformance runs Trainer itself and writes the parts upstream.yaml or upstream-error.txt; where its answer
// depends on the order of a Go map there are several, and ours must be one of them. Differences that are meant are in
// upstream_differences_test.go; one that is not there fails, and a line there that no case needs fails too.
func TestUpstream(t *testing.T) {
	table := intendedDifferences()
	used := make([]bool, len(table))
	for _, c := range loadCases(t).All() {
		t.Run(c.Name, func(t *testing.T) {
			for _, d := range closest(t, c) {
				i := slices.IndexFunc(table, func(line intended) bool { return line.covers(c.Name, d) })
				if i < 0 {
					t.Errorf("%s\n  upstream: %v\n  ours:     %v", d.path, d.theirs, d.ours)
					continue
				}
				used[i] = true
			}
		})
	}
	if t.Failed() {
		return
	}
	for i, line := range table {
		if !used[i] {
			t.Errorf("no case needs the line %s %s (%s): remove it", line.cases, line.path, line.reason)
		}
	}
}

// intended is a difference that is meant.
type intended struct {
	// cases and path are regular expressions for the whole name and path.
	cases, path string
	// addition covers only fields that upstream does not have at all.
	addition bool
	reason   string
}

func (i intended) covers(name string, d difference) bool {
	whole := func(expression, text string) bool {
		return regexp.MustCompile("^(?:" + expression + ")$").MatchString(text)
	}
	return whole(i.cases, name) && whole(i.path, d.path) && (!i.addition || d.theirs == nil)
}

// difference is a place where we and upstream differ. A path is Kind followed by fields; [x] is the list's item that is
// called x or is at x, #order the order of named items. "refused" is a case that only we refuse, "accepted" one that
// only upstream refuses, and "fault ..." a line of a refusal that only one of us has.
type difference struct {
	path         string
	theirs, ours any
}

// closest returns our differences from the answer of upstream's that is nearest to ours.
func closest(t *testing.T, c *cases.Case) []difference {
	t.Helper()
	answers := c.Parts("upstream")
	if len(answers) == 0 {
		t.Fatal("no answer of upstream's: run make generate-conformance")
	}
	job, rt, options := inputs(t, c)
	job.Annotations, rt.Annotations = without(job.Annotations), without(rt.Annotations)
	rt.Spec.Scheduling = nil
	if job.Spec.Trainer != nil {
		job.Spec.Trainer.ResourceClaimsPerNode = nil
	}
	var nearest []difference
	for i, name := range answers {
		text, _ := c.Text(name)
		found := compareAnswer(
			t,
			strings.HasPrefix(name, "upstream-error"),
			[]byte(text),
			job,
			rt,
			plan.Options{StatusServer: options.StatusServer, SecretSuffix: options.SecretSuffix},
		)
		if i == 0 || len(found) < len(nearest) {
			nearest = found
		}
	}
	return nearest
}

// without is annotations without those that are ours, which upstream does not know.
func without(annotations map[string]string) map[string]string {
	rest := maps.Clone(annotations)
	maps.DeleteFunc(rest, func(key, _ string) bool { return strings.HasPrefix(key, "lockstep.dev/") })
	return rest
}

func compareAnswer(
	t *testing.T, isRefusal bool, answer []byte, job *trainerv1alpha1.TrainJob, rt plan.Runtime, options plan.Options,
) []difference {
	t.Helper()
	planned, err := plan.New(job, rt, options)
	switch {
	case err != nil && isRefusal:
		return compareFaults(string(answer), job, rt)
	case err != nil:
		return []difference{{path: "refused", theirs: "objects", ours: err}}
	case isRefusal:
		return []difference{{path: "accepted", theirs: string(answer), ours: "objects"}}
	}
	theirs, ours := parseObjects(t, answer), ourObjects(t, planned)
	var found []difference
	for _, kind := range keysOf(theirs, ours) {
		found = append(found, compareValues(kind, theirs[kind], ours[kind])...)
	}
	return found
}

// compareFaults compares refusals without the values that they quote.
func compareFaults(answer string, job *trainerv1alpha1.TrainJob, rt plan.Runtime) []difference {
	theirs, ours := map[string]any{}, map[string]any{}
	for line := range strings.Lines(answer) {
		theirs[strings.TrimSpace(line)] = "said"
	}
	for _, fault := range plan.Validate(job, rt, plan.Options{}) {
		ours[strings.TrimSpace(fmt.Sprintf("%s: %s: %s", fault.Field, fault.Type, fault.Detail))] = "said"
	}
	var found []difference
	for _, line := range keysOf(theirs, ours) {
		if theirs[line] == nil || ours[line] == nil {
			found = append(found, difference{path: "fault " + line, theirs: theirs[line], ours: ours[line]})
		}
	}
	return found
}

// parseObjects decodes objects into our types, so that empty fields print alike. Of Secrets only the names are
// compared: their content is randomly generated, by package trainjob.
func parseObjects(t *testing.T, text []byte) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var content map[string]any
		if err := yaml.Unmarshal(document, &content); err != nil {
			t.Fatal(err)
		}
		kind, _ := content["kind"].(string)
		metadata, _ := content["metadata"].(map[string]any)
		key := fmt.Sprintf("%s[%v]", kind, metadata["name"])
		switch kind {
		case "Secret":
			objects[key] = "made"
		case "ConfigMap":
			objects[key] = parseAs(t, document, &corev1.ConfigMap{})
		case "JobSet":
			objects[kind] = parseAs(t, document, &jobsetv1alpha2.JobSet{})
		default:
			objects[key] = content
		}
	}
	return objects
}

func parseAs(t *testing.T, document []byte, into runtime.Object) map[string]any {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Fatal(err)
	}
	content, err := plan.Applicable(into)
	if err != nil {
		t.Fatal(err)
	}
	return content.Object
}

// ourObjects returns a plan in the same form. New kinds of objects in a plan must be added here.
func ourObjects(t *testing.T, planned plan.Plan) map[string]any {
	t.Helper()
	objects := map[string]any{}
	put := func(key string, object runtime.Object) {
		content, err := plan.Applicable(object)
		if err != nil {
			t.Fatal(err)
		}
		objects[key] = content.Object
	}
	put("JobSet", planned.JobSet)
	for _, config := range planned.ConfigMaps {
		config = config.DeepCopy()
		for key := range config.Data {
			if strings.HasSuffix(key, ".sh") { // upstream's are not written down either
				config.Data[key] = "script"
			}
		}
		put("ConfigMap["+config.Name+"]", config)
	}
	for _, secret := range planned.Secrets {
		objects["Secret["+secret.Name+"]"] = "made"
	}
	if planned.ForeignGroup != nil {
		text, err := yaml.Marshal(planned.ForeignGroup.Object)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any // with numbers as a document has them
		if err = yaml.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		objects["PodGroup["+planned.ForeignGroup.GetName()+"]"] = content
	}
	return objects
}

// compareValues compares two trees. Items of a list are known by their name where they have one, and their order is
// compared apart.
func compareValues(path string, theirs, ours any) []difference {
	a, aMap := theirs.(map[string]any)
	b, bMap := ours.(map[string]any)
	if aMap && bMap {
		var found []difference
		for _, key := range keysOf(a, b) {
			found = append(found, compareValues(path+"."+key, a[key], b[key])...)
		}
		return found
	}
	aNames, aItems := named(theirs)
	bNames, bItems := named(ours)
	if aItems == nil || bItems == nil {
		if reflect.DeepEqual(theirs, ours) {
			return nil
		}
		return []difference{{path: path, theirs: theirs, ours: ours}}
	}
	var found []difference
	for _, name := range keysOf(aItems, bItems) {
		found = append(found, compareValues(path+"["+name+"]", aItems[name], bItems[name])...)
	}
	aNames = slices.DeleteFunc(aNames, func(name string) bool { return bItems[name] == nil })
	bNames = slices.DeleteFunc(bNames, func(name string) bool { return aItems[name] == nil })
	if !slices.Equal(aNames, bNames) {
		found = append(found, difference{path: path + "#order", theirs: aNames, ours: bNames})
	}
	return found
}

// named returns a list by the names of its items, or by their indexes where they have no unique names; nil for a value
// that is no list.
func named(value any) ([]string, map[string]any) {
	list, ok := value.([]any)
	if !ok {
		return nil, nil
	}
	names, items := make([]string, 0, len(list)), make(map[string]any, len(list))
	for i, item := range list {
		name := strconv.Itoa(i)
		if fields, isMap := item.(map[string]any); isMap && fields["name"] != nil {
			name = fmt.Sprint(fields["name"])
		}
		if items[name] != nil {
			name = strconv.Itoa(i)
		}
		names, items[name] = append(names, name), item
	}
	return names, items
}

func keysOf(a, b map[string]any) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]any{a, b} {
			for key := range m {
				if !yield(key) {
					return
				}
			}
		}
	}))
}
