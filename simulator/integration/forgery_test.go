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

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
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
	testcluster.Within(t, 10*time.Second, "the tenants' roles", func() bool {
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

// watch follows the job until its JobSet runs, and for a moment longer. A job that is running is suspended and resumed
// once, so that it is rendered again under attack.
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
	testcluster.Ask(t, func() error {
		_, err := f.tenants[0].Resource(trainJobs).Namespace(f.namespace).Patch(t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspended), metav1.PatchOptions{})
		return err
	})
}

// reaches reports whether the job's JobSet gets into a state, such as "suspended true", within a minute.
func (f *forgery) reaches(t *testing.T, name, want string) bool {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
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
