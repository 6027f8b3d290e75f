package integration_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/stage"
)

var rounds = flag.Int(
	"rounds",
	6,
	"how many jobs TestFrozenTrainJob_ForgersNeverWin lets forgers attack, ten at a time",
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	workloads  = gangapi.Native.Version().WithResource("workloads")
	frozenJobs = schema.GroupVersionResource{
		Group:    "state.lockstep.dev",
		Version:  "v1alpha1",
		Resource: "frozentrainjobs",
	}
)

// A tenant with rights on TrainJobs and ConfigMaps only, and one with every verb on everything of core, of TrainJobs
// and of Lockstep in the namespace, race the controller for the job's copy of its runtime: before the job exists, while
// it is first rendered, while it is queued and when it is resumed. A win is any object of the job's with a part of the
// forged runtime. The forgers must not prevent the job from starting either.
func TestFrozenTrainJob_ForgersNeverWin(t *testing.T) {
	f := newForgery(t)
	wins := 0
	for round := range *rounds {
		if won := f.play(t, round); won != "" {
			wins++
			t.Errorf("round %d: %s", round, won)
		}
	}
	t.Logf("%d of %d rounds won by ten forgers each, who wrote %d times", wins, *rounds, f.wrote)
}

// forgery is the scene of the race: a namespace with the administrator's runtime, and the tenants that forge it.
type forgery struct {
	namespace string
	// tenants may write ConfigMaps, and everything of Lockstep's in the namespace.
	tenants []dynamic.Interface
	// runtime is the administrator's, as stored.
	runtime *unstructured.Unstructured

	mu    sync.Mutex
	wrote int
}

// forgedMark is part of everything that a forged runtime would bring.
const forgedMark = "forged"

func newForgery(t *testing.T) *forgery {
	t.Helper()
	f := &forgery{namespace: "forgery"}
	makeNamespace(t, f.namespace)
	top := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: forgedMark + "-top"}, Value: 1_000_000}
	if _, err := shared.Client.SchedulingV1().
		PriorityClasses().
		Create(t.Context(), top, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	narrow := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
		{APIGroups: []string{"trainer.kubeflow.org"}, Resources: []string{"trainjobs"}, Verbs: []string{"*"}},
	}
	wide := []rbacv1.PolicyRule{
		{
			APIGroups: []string{
				"",
				"trainer.kubeflow.org",
				"lockstep.dev",
				"scheduling.lockstep.dev",
				"state.lockstep.dev",
			},
			Resources: []string{"*"},
			Verbs:     []string{"*"},
		},
	}
	for name, rules := range map[string][]rbacv1.PolicyRule{"narrow": narrow, "wide": wide} {
		client, err := dynamic.NewForConfig(tenantWith(t, f.namespace, "forger-"+name, rules))
		if err != nil {
			t.Fatal(err)
		}
		f.tenants = append(f.tenants, client)
	}
	runtime := objectOf(t, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: approved, namespace: forgery}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: example.com/approved:1}]}}}
`)
	var err error
	f.runtime, err = shared.Create(t.Context(), runtime)
	if err != nil {
		t.Fatal(err)
	}
	stage.Within(t, 10*time.Second, "the tenants' roles", func() bool {
		for _, tenant := range f.tenants {
			if _, err := tenant.Resource(configMaps).
				Namespace(f.namespace).
				List(t.Context(), metav1.ListOptions{}); err != nil {
				return false
			}
		}
		return true
	})
	return f
}

// tenantWith returns access for a user with these rights in a namespace, and no others.
func tenantWith(t *testing.T, namespace, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	_, err := shared.Client.RbacV1().Roles(namespace).Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return as(name)
}

// play lets ten forgers attack one job, and returns their success; empty for none.
func (f *forgery) play(t *testing.T, round int) (won string) {
	t.Helper()
	name := fmt.Sprintf("attacked-%d", round)
	uid := make(chan types.UID, len(falseOwners()))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i, owners := range falseOwners() {
		rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
		group.Go(func() { f.forge(ctx, name, rng, owners, uid, i) })
	}
	// In every other round the forgers have names made before there is a job; in every third the job is queued first.
	time.Sleep(time.Duration(round%2) * 50 * time.Millisecond)
	job := f.submit(t, name, round%3 == 0)
	for range falseOwners() {
		uid <- job.GetUID()
	}
	won = f.watch(t, name, round%3 == 0)
	stop()
	group.Wait()
	f.remove(t, name)
	return won
}

func (f *forgery) submit(t *testing.T, name string, suspended bool) *unstructured.Unstructured {
	t.Helper()
	job := objectOf(t, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: %s}
spec: {suspend: %t, runtimeRef: {kind: TrainingRuntime, name: approved}}
`, name, f.namespace, suspended))
	created, err := f.tenants[0].Resource(trainJobs).
		Namespace(f.namespace).
		Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// watch follows the job until its JobSet runs, and for a moment longer. A job that is running is suspended and resumed once, so
// that it is rendered again under attack.
func (f *forgery) watch(t *testing.T, name string, queued bool) string {
	t.Helper()
	for _, suspended := range []bool{queued, true, false} {
		f.suspend(t, name, suspended)
		want := fmt.Sprintf("suspended %t", suspended)
		if !f.reaches(t, name, want) {
			return cmp.Or(f.traces(t, name), "the forgers keep the JobSet from being "+want)
		}
		if won := f.traces(t, name); won != "" {
			return won
		}
	}
	time.Sleep(100 * time.Millisecond)
	return f.traces(t, name)
}

func (f *forgery) suspend(t *testing.T, name string, suspended bool) {
	t.Helper()
	stage.Ask(t, func() error {
		_, err := f.tenants[0].Resource(trainJobs).Namespace(f.namespace).Patch(t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspended), metav1.PatchOptions{})
		return err
	})
}

// reaches reports whether the job's JobSet gets into a state, such as "suspended true", within 15 s.
func (f *forgery) reaches(t *testing.T, name, want string) bool {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		jobSet, err := shared.Dynamic.Resource(jobSets).
			Namespace(f.namespace).
			Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		if is, _, _ := unstructured.NestedBool(
			jobSet.Object,
			"spec",
			"suspend",
		); fmt.Sprintf(
			"suspended %t",
			is,
		) == want {
			return true
		}
	}
	return false
}

// traces names the first object of the job's that has something of the forged runtime.
func (f *forgery) traces(t *testing.T, name string) string {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{jobSets, offered().API().Resource()} {
		object, err := shared.Dynamic.Resource(resource).
			Namespace(f.namespace).
			Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		spec, err := json.Marshal(object.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(spec), forgedMark+"-") || strings.Contains(string(spec), `"hostPID":true`) {
			return "the " + object.GetKind() + " is of the forged runtime"
		}
	}
	for _, pod := range podsOf(t.Context(), t, f.namespace, name) {
		if pod.Spec.HostPID || pod.Spec.PriorityClassName != "" {
			return "pod " + pod.Name + " is of the forged runtime"
		}
	}
	return ""
}

func (f *forgery) remove(t *testing.T, name string) {
	t.Helper()
	err := shared.Dynamic.Resource(trainJobs).Namespace(f.namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	err = shared.Client.CoreV1().
		ConfigMaps(f.namespace).
		DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// forge writes, changes and deletes objects that could pass for the job's copy, with one shape of owners, until ctx
// ends.
func (f *forgery) forge(
	ctx context.Context, name string, rng *rand.Rand, owners func(string, types.UID) []metav1.OwnerReference,
	uid <-chan types.UID, i int,
) {
	tenant := f.tenants[i%len(f.tenants)]
	copies := tenant.Resource(configMaps).Namespace(f.namespace)
	states := tenant.Resource(frozenJobs)
	var of types.UID
	for ctx.Err() == nil {
		select {
		case of = <-uid:
		default:
		}
		forged := f.copyOf(name, of, owners)
		switch rng.IntN(6) {
		case 0, 1:
			_, err := copies.Create(ctx, forged, metav1.CreateOptions{})
			f.count(err)
		case 2:
			f.count(copies.Delete(ctx, forged.GetName(), metav1.DeleteOptions{}))
		case 3:
			_, err := copies.Update(ctx, forged, metav1.UpdateOptions{})
			f.count(err)
		case 4: // an update may pass where a create is refused
			bare := forged.DeepCopy()
			bare.SetOwnerReferences(nil)
			unstructured.RemoveNestedField(bare.Object, "immutable")
			_, err := copies.Create(ctx, bare, metav1.CreateOptions{})
			f.count(err)
			_, err = copies.Update(ctx, forged, metav1.UpdateOptions{})
			f.count(err)
		case 5: // in the namespace of the forger, and in the controller's
			for _, namespace := range []string{f.namespace, "lockstep-system"} {
				state := f.stateOf(namespace, name, of)
				_, err := states.Namespace(namespace).Create(ctx, state, metav1.CreateOptions{})
				f.count(err)
				_, err = states.Namespace(namespace).Update(ctx, state, metav1.UpdateOptions{})
				f.count(err)
				f.count(states.Namespace(namespace).Delete(ctx, state.GetName(), metav1.DeleteOptions{}))
			}
		}
	}
}

// count counts the writes that the API server admitted.
func (f *forgery) count(err error) {
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrote++
}

// copyOf returns a forged copy of a runtime for a job, as the version before, and Kubeflow Trainer, store it.
func (f *forgery) copyOf(
	name string, of types.UID, owners func(string, types.UID) []metav1.OwnerReference,
) *unstructured.Unstructured {
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
		"data": map[string]any{"runtime": f.forged()},
	}}
	config.SetNamespace(f.namespace)
	config.SetName(name + "-runtime-snapshot")
	if of != "" {
		config.SetOwnerReferences(owners(name, of))
	}
	return config
}

// stateOf returns a forged state of a job, as this version stores it.
func (f *forgery) stateOf(namespace, name string, of types.UID) *unstructured.Unstructured {
	var runtime map[string]any
	if err := json.Unmarshal([]byte(f.forged()), &runtime); err != nil {
		panic(err)
	}
	if of == "" {
		of = "00000000-0000-0000-0000-000000000000"
	}
	state := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "state.lockstep.dev/v1alpha1", "kind": "FrozenTrainJob",
		"spec": map[string]any{
			"trainJob": map[string]any{"namespace": f.namespace, "name": name, "uid": string(of)},
			"runtime":  runtime,
		},
	}}
	state.SetNamespace(namespace)
	state.SetName(string(of))
	return state
}

// forged is the administrator's runtime as the tenant wants it, as JSON, which is YAML too.
func (f *forgery) forged() string {
	forged := f.runtime.DeepCopy()
	replicated, _, _ := unstructured.NestedSlice(forged.Object, "spec", "template", "spec", "replicatedJobs")
	pod := map[string]any{
		"hostPID": true, "hostNetwork": true, "priorityClassName": forgedMark + "-top",
		"containers": []any{map[string]any{"name": "node", "image": "example.com/" + forgedMark + "-image:1"}},
		"volumes":    []any{map[string]any{"name": forgedMark + "-root", "hostPath": map[string]any{"path": "/"}}},
	}
	_ = unstructured.SetNestedField(replicated[0].(map[string]any), pod, "template", "spec", "template", "spec")
	_ = unstructured.SetNestedSlice(forged.Object, replicated, "spec", "template", "spec", "replicatedJobs")
	content, err := json.Marshal(forged.Object)
	if err != nil {
		panic(err)
	}
	return string(content)
}

// objectOf reads one document of YAML.
func objectOf(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return &object
}

// falseOwners are the shapes in which a forger claims that an object is the job's, the true one among them: one forger each.
func falseOwners() []func(name string, uid types.UID) []metav1.OwnerReference {
	shape := func(apiVersion, kind string) func(string, types.UID) []metav1.OwnerReference {
		return func(name string, uid types.UID) []metav1.OwnerReference {
			return []metav1.OwnerReference{
				{
					APIVersion:         apiVersion,
					Kind:               kind,
					Name:               name,
					UID:                uid,
					Controller:         new(true),
					BlockOwnerDeletion: new(true),
				},
			}
		}
	}
	const trainer = "trainer.kubeflow.org/v1alpha1"
	renamed := func(_ string, uid types.UID) []metav1.OwnerReference { return shape(trainer, "TrainJob")("other", uid) }
	second := func(name string, uid types.UID) []metav1.OwnerReference {
		weak := shape(trainer, "TrainJob")(name, uid)
		weak[0].Controller = nil
		return append(weak, shape("evil.example/v1", "Nothing")(name, uid)...)
	}
	none := func(string, types.UID) []metav1.OwnerReference { return nil }
	return []func(string, types.UID) []metav1.OwnerReference{
		shape(
			"evil.example/v1",
			"Nothing",
		),
		shape(trainer, "TrainJob"),
		shape("trainer.kubeflow.org/v2alpha1", "TrainJob"),
		shape("trainer.kubeflow.org/v9", "TrainJob"),
		shape(trainer, "TrainingRuntime"),
		shape(trainer, "trainjob"),
		shape("trainer.kubeflow.org.evil.example/v1alpha1", "TrainJob"),
		renamed,
		second,
		none,
	}
}
