package admission_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/nodefit"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/plan/cases"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// FuzzValidate looks for objects that make validation or the planner panic. It mangles the planner's golden cases as
// JSON trees, so that most results still are a TrainJob and a runtime; random bytes would be neither.
func FuzzValidate(f *testing.F) {
	jobs, runtimes := trees(f, cases.TrainJob), trees(f, cases.Runtime)
	parts := pool{}
	for i := range jobs {
		parts.gather(jobs[i])
		parts.gather(runtimes[i])
		f.Add(uint64(i), uint64(i), uint64(i), byte(i%4))
	}
	f.Fuzz(func(t *testing.T, whichJob, whichRuntime, seed uint64, switches byte) {
		m := mangler{rand.New(rand.NewPCG(seed, 1)), parts}
		tryMangled(t, m, jobs[whichJob%uint64(len(jobs))], runtimes[whichRuntime%uint64(len(runtimes))], switches)
	})
}

// tryMangled mangles a job twice and a runtime once, and shows them to the planner and admission.
func tryMangled(t *testing.T, m mangler, first, blueprint any, switches byte) {
	t.Helper()
	var old, job trainerv1alpha1.TrainJob
	var rt trainerv1alpha1.ClusterTrainingRuntime
	before := m.mangled(first)
	after := m.mangled(before)
	if !become(before, &old) || !become(after, &job) || !become(m.mangled(blueprint), &rt) {
		return
	}
	bound(&old, &job, &rt)
	found := plan.Runtime{Kind: "ClusterTrainingRuntime", Name: rt.Name, Annotations: rt.Annotations, Spec: rt.Spec}
	options := plan.Options{Gang: switches&1 != 0, KeepsConstraints: switches&2 != 0, KeepsClaims: switches&2 != 0}
	agree(t, &job, found, options)
	admission.JudgeClusterRuntime(nil, &rt)
	validator := &admission.Validator{
		Runtimes: finds{
			found: resolve.Found{Runtime: found},
		},
		JobSets: nothing{},
		Live:    nothing{},
		Nodes:   nodefit.Nodes{Cache: nothing{}, Live: nothing{}},
		Options: options,
	}
	if _, err := validator.Update(t.Context(), &old, &job); err != nil {
		t.Fatal(err)
	}
	out, err := admission.Default(printed(t, before), printed(t, after), now())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := admission.Default(printed(t, before), out, now()); err != nil || string(again) != string(out) {
		t.Fatalf("a second time (%v):\n%s\nafter\n%s", err, again, out)
	}
}

func printed(t *testing.T, tree any) []byte {
	t.Helper()
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// agree checks that the planner and admission are of one opinion.
func agree(t *testing.T, job *trainerv1alpha1.TrainJob, found plan.Runtime, options plan.Options) {
	t.Helper()
	planned, err := plan.New(job, found, options)
	faults := plan.Validate(job, found, options)
	if (err == nil) != (len(faults) == 0) {
		t.Fatalf("planning says %v, validation %v", err, faults)
	}
	if err == nil {
		if _, err = plan.Applicable(planned.JobSet); err != nil {
			t.Fatal(err)
		}
		for _, group := range planned.PodGroups {
			if gang := group.Spec.SchedulingPolicy.Gang; gang != nil && gang.MinCount < 1 {
				t.Fatalf("a gang of %d", gang.MinCount)
			}
		}
	}
	validator := &admission.Validator{
		Runtimes: finds{
			found: resolve.Found{Runtime: found},
		},
		JobSets: nothing{},
		Live:    nothing{},
		Nodes:   nodefit.Nodes{Cache: nothing{}, Live: nothing{}},
		Options: options,
	}
	unusable := faultsOf(found)
	verdict, err := validator.Create(t.Context(), job)
	if err != nil || (verdict.Refusal == nil) != (len(faults) == 0 && len(unusable) == 0) {
		t.Fatalf("admission says %v (%v), the planner %v, of the runtime %v", verdict.Refusal, err, faults, unusable)
	}
}

// faultsOf returns the faults of a runtime as the API server would have stored it.
func faultsOf(found plan.Runtime) field.ErrorList {
	spec := found.Spec.DeepCopy()
	for i := range spec.Template.Spec.ReplicatedJobs {
		if replicas := &spec.Template.Spec.ReplicatedJobs[i].Replicas; *replicas < 1 {
			*replicas = 1
		}
	}
	return admission.CheckRuntime(metav1.ObjectMeta{Name: found.Name, Annotations: found.Annotations}, *spec)
}

// nothing finds every object, as an empty one.
type nothing struct{ client.Reader }

func (nothing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// bound limits numbers of pods: the plan of each pod takes memory.
func bound(old, job *trainerv1alpha1.TrainJob, rt *trainerv1alpha1.ClusterTrainingRuntime) {
	small := func(number *int32) {
		if number != nil {
			*number = min(*number, 50)
		}
	}
	for _, j := range []*trainerv1alpha1.TrainJob{old, job} {
		if j.Spec.Trainer != nil {
			small(j.Spec.Trainer.NumNodes)
		}
	}
	if rt.Spec.MLPolicy != nil {
		small(rt.Spec.MLPolicy.NumNodes)
	}
	for i := range rt.Spec.Template.Spec.ReplicatedJobs {
		replicated := &rt.Spec.Template.Spec.ReplicatedJobs[i]
		small(&replicated.Replicas)
		small(replicated.Template.Spec.Parallelism)
	}
}

// pool holds the values under each name in the golden cases.
type pool map[string][]any

func (p pool) gather(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			p[key] = append(p[key], value[key])
			p.gather(value[key])
		}
	case []any:
		for _, inner := range value {
			p.gather(inner)
		}
	}
}

// mangler changes JSON trees at random.
type mangler struct {
	random *rand.Rand
	parts  pool
}

// mangled is a tree with a few changes anywhere in it: values removed, null, empty, twice, out of range, or from
// elsewhere.
func (m mangler) mangled(tree any) any {
	out := tree
	for range m.random.IntN(6) {
		out = m.mangle(out)
	}
	return out
}

func (m mangler) mangle(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && m.random.IntN(16) > 0 {
			return m.mangleObject(value)
		}
	case []any:
		if len(value) > 0 && m.random.IntN(16) > 0 {
			return m.mangleList(value)
		}
	case string:
		words := []string{
			"",
			"node",
			"launcher",
			"a/b",
			"-",
			"tune",
			"run",
			"dataset-initializer",
			"trainer",
			"Complete",
			"Ready",
			"on",
			"-1",
			"1e30",
			"nvidia.com/gpu",
			"kueue.x-k8s.io/manager",
		}
		return words[m.random.IntN(len(words))]
	case float64:
		return []any{0, 1, -1, 2147483647, -2147483648, nil}[m.random.IntN(6)]
	case bool:
		return !value
	}
	return []any{nil, map[string]any{}, []any{}}[m.random.IntN(3)]
}

func (m mangler) mangleObject(object map[string]any) any {
	keys := slices.Sorted(maps.Keys(object))
	key := keys[m.random.IntN(len(keys))]
	out := maps.Clone(object)
	switch m.random.IntN(12) {
	case 0:
		delete(out, key)
	case 1:
		out[key] = m.parts[key][m.random.IntN(len(m.parts[key]))]
	case 2:
		all := slices.Sorted(maps.Keys(m.parts))
		key = all[m.random.IntN(len(all))]
		out[key] = m.parts[key][m.random.IntN(len(m.parts[key]))]
	default:
		out[key] = m.mangle(object[key])
	}
	return out
}

func (m mangler) mangleList(list []any) any {
	i := m.random.IntN(len(list))
	out := slices.Clone(list)
	switch m.random.IntN(12) {
	case 0:
		return slices.Delete(out, i, i+1)
	case 1:
		return append(out, list[i])
	case 2:
		slices.Reverse(out)
	default:
		out[i] = m.mangle(list[i])
	}
	return out
}

// become reports whether a tree is an object of into's kind, which it becomes.
func become(tree, into any) bool {
	if _, ok := tree.(map[string]any); !ok {
		return false
	}
	text, err := json.Marshal(tree)
	return err == nil && json.Unmarshal(text, into) == nil
}

// trees returns the parts of a name in the planner's golden cases.
func trees(f *testing.F, name string) []any {
	f.Helper()
	set, err := cases.Load("../plan/testdata")
	if err != nil {
		f.Fatal(err)
	}
	var out []any
	for _, c := range set.All() {
		text, _ := c.Text(name)
		var tree any
		if err := yaml.UnmarshalStrict([]byte(text), &tree); err != nil {
			f.Fatalf("%s: %s: %v", c.Name, name, err)
		}
		out = append(out, tree)
	}
	return out
}
