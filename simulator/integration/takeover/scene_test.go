package takeover_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

func trainer(name string) schema.GroupVersionResource {
	return resource("trainer.kubeflow.org", "v1alpha1", name)
}

// scene is a namespace with TrainJobs and the controllers around it.
type scene struct {
	t       *testing.T
	team    string
	release cluster.Trainer
	began   time.Time
	// blocks are commands with their output, by their place in docs/takeover.md.
	blocks map[string]string
}

// say prints a line of the transcript.
func (s scene) say(format string, values ...any) {
	s.t.Helper()
	s.t.Logf("%5.1fs %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, values...))
}

func (s scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// newScene is a cluster with Kubeflow Trainer as its deployment installs it, and without Lockstep's controller.
func newScene(t *testing.T, team string, release cluster.Trainer) scene {
	t.Helper()
	s := scene{t: t, team: team, release: release, began: time.Now(), blocks: map[string]string{}}
	t.Setenv("KUBECONFIG", shared.Kubeconfig())
	for _, component := range shared.Components() {
		switch component.Name {
		case "lockstep-controller":
			s.stopLockstep("")
		case "kubeflow-trainer":
			s.stopTrainer("")
		}
	}
	s.installTheirCRDs()
	s.startTrainer()
	s.must(shared.ApplyTrainer(t.Context(), release, "runtimes"))
	s.namespace(team, nil)
	return s
}

func (s scene) namespace(name string, labels map[string]string) {
	s.t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Create(s.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	s.must(err)
}

func (s scene) startTrainer() {
	s.t.Helper()
	s.must(shared.StartTrainer(s.t.Context(), s.release))
	s.must(shared.ApplyTrainerWebhooks(s.t.Context(), s.release))
	s.say("Kubeflow Trainer %s runs", s.release.Version)
}

// stopTrainer follows docs/takeover.md: the Deployment is scaled to zero, and its webhooks are deleted, which would not
// be answered.
func (s scene) stopTrainer(block string) {
	s.t.Helper()
	s.must(shared.StopTrainer(s.t.Context()))
	s.say("Kubeflow Trainer is stopped")
	s.kubectl(block, "delete", "--ignore-not-found",
		"mutatingwebhookconfiguration/defaulter.trainer.kubeflow.org",
		"validatingwebhookconfiguration/validator.trainer.kubeflow.org")
}

func (s scene) startLockstep(flags ...string) {
	s.t.Helper()
	rendered, err := render.Chart(render.Default().With("takeOver", cluster.TrainerNamespace))
	s.must(err)
	s.must(shared.ApplyAll(s.t.Context(), slices.DeleteFunc(rendered.Objects, func(o *unstructured.Unstructured) bool {
		kind := o.GetKind()
		return kind != "ServiceAccount" && !strings.Contains(kind, "Role") && !strings.Contains(kind, "AdmissionPolicy")
	})))
	s.must(shared.StartController(s.t.Context(), flags...))
	s.must(shared.ApplyWebhooks(s.t.Context()))
	s.say("Lockstep runs with %s", strings.Join(flags, " "))
}

func (s scene) stopLockstep(block string) {
	s.t.Helper()
	s.must(shared.StopController(s.t.Context()))
	s.say("Lockstep is stopped")
	s.kubectl(block, "delete", "--ignore-not-found",
		"mutatingwebhookconfiguration/"+controller.MutatingConfiguration,
		"validatingwebhookconfiguration/"+controller.ValidatingConfiguration)
}

// runtime makes a TrainingRuntime of two nodes whose pods run so long.
func (s scene) runtime(namespace, name, runTime string, annotations, labels map[string]any) {
	s.t.Helper()
	object := testcluster.TorchRuntime(name, runTime)
	object["metadata"] = map[string]any{"name": name, "annotations": annotations, "labels": labels}
	s.create(trainer("trainingruntimes"), namespace, object)
}

// job creates a TrainJob; more are the fields of its spec beside the runtime. A validator that does not see the job's
// new runtime yet refuses the job, so the creation is retried.
func (s scene) job(namespace, name, kind, runtime string, more map[string]any) {
	s.t.Helper()
	s.eventually("the creation of "+name, patience, func() bool {
		_, err := s.tryJob(namespace, name, kind, runtime, more)
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			s.t.Fatal(err)
		}
		return err == nil
	})
}

// tryJob creates a TrainJob once; with dryRun (metav1.DryRunAll) it returns the object that would be created.
func (s scene) tryJob(
	namespace, name, kind, runtime string, more map[string]any, dryRun ...string,
) (*unstructured.Unstructured, error) {
	s.t.Helper()
	spec := map[string]any{"runtimeRef": map[string]any{"kind": kind, "name": runtime}}
	maps.Copy(spec, more)
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	return shared.Dynamic.Resource(trainer("trainjobs")).Namespace(namespace).
		Create(s.t.Context(), job, metav1.CreateOptions{DryRun: dryRun})
}

func (s scene) create(of schema.GroupVersionResource, namespace string, content map[string]any) {
	s.t.Helper()
	content["apiVersion"] = "trainer.kubeflow.org/v1alpha1"
	_, err := shared.Dynamic.Resource(of).Namespace(namespace).
		Create(s.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	s.must(err)
}

func (s scene) suspend(name string, value bool) {
	s.t.Helper()
	_, err := shared.Dynamic.Resource(trainer("trainjobs")).
		Namespace(s.team).
		Patch(s.t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, value), metav1.PatchOptions{})
	s.must(err)
}

// read is an object of a job's name; nil if there is none.
func (s scene) read(of schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.t.Helper()
	found, err := shared.Dynamic.Resource(of).Namespace(namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return found
}

func (s scene) jobSet(namespace, name string) *unstructured.Unstructured {
	s.t.Helper()
	return s.read(resource("jobset.x-k8s.io", "v1alpha2", "jobsets"), namespace, name)
}

// isGang reports whether the pods of a job's JobSet are in its group.
func (s scene) isGang(namespace, name string) bool {
	s.t.Helper()
	jobSet := s.jobSet(namespace, name)
	return jobSet != nil && strings.Contains(fmt.Sprint(jobSet.Object), "podGroupName:"+name)
}

// groups are the names of the PodGroups and Workloads of a namespace.
func (s scene) groups(namespace string) []string {
	s.t.Helper()
	var names []string
	for _, kind := range []string{"podgroups", "workloads"} {
		list, err := shared.Dynamic.Resource(resource("scheduling.k8s.io", "v1beta1", kind)).
			Namespace(namespace).List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		for _, object := range list.Items {
			names = append(names, kind+"/"+object.GetName())
		}
	}
	return names
}

// frozen returns the jobs of these namespaces that Lockstep has rendered, as namespace/name, in order.
func (s scene) frozen(namespaces ...string) []string {
	s.t.Helper()
	list, err := shared.Dynamic.Resource(resource("state.lockstep.dev", "v1alpha1", "frozentrainjobs")).
		Namespace("lockstep-system").List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	var names []string
	for _, state := range list.Items {
		namespace, _, _ := unstructured.NestedString(state.Object, "spec", "trainJob", "namespace")
		name, _, _ := unstructured.NestedString(state.Object, "spec", "trainJob", "name")
		if slices.Contains(namespaces, namespace) { // jobs of earlier scenes are still there
			names = append(names, namespace+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// pods are the UIDs of a job's pods that run or ran, in order.
func (s scene) pods(namespace, name string) []string {
	s.t.Helper()
	var found []string
	for _, pod := range shared.PodsOf(s.t.Context(), s.t, namespace, name) {
		if pod.Status.Phase != corev1.PodPending && pod.DeletionTimestamp == nil {
			found = append(found, string(pod.UID))
		}
	}
	slices.Sort(found)
	return found
}

// holder returns the holder of a lease.
func (s scene) holder(namespace, name string) string {
	s.t.Helper()
	lease, err := shared.Client.CoordinationV1().Leases(namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// condition is the status of a job's condition; empty if it has none.
func (s scene) condition(namespace, name, kind string) string {
	s.t.Helper()
	job := s.read(trainer("trainjobs"), namespace, name)
	if job == nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, entry := range conditions {
		fields, _ := entry.(map[string]any)
		if fields["type"] == kind {
			return fmt.Sprint(fields["status"])
		}
	}
	return ""
}

func (s scene) complete(namespace string, names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.eventually("the completion of "+name, 4*time.Minute, func() bool {
			return s.condition(namespace, name, "Complete") == "True"
		})
	}
	s.say("complete: %s", strings.Join(names, ", "))
}

// eventually fails the test unless the condition holds in time.
func (s scene) eventually(what string, limit time.Duration, holds func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 200*time.Millisecond, limit, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		s.t.Fatalf("%s did not come: %v", what, err)
	}
}
