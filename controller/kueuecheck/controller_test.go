package kueuecheck_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/kueuecheck"
)

func noon() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }

const checks = `apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: ours}
spec: {controllerName: lockstep.dev/nodes}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: theirs}
spec: {controllerName: kueue.x-k8s.io/provisioning-request}
`

// workload is a Workload of job train with quota, and a check each of Lockstep and of another controller.
const workload = `apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: train
  namespace: team-a
  ownerReferences:
  - {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: train, uid: job-uid, controller: true}
status:
  conditions: [{type: QuotaReserved, status: "True"}, {type: Evicted, status: "EVICTED"}]
  admissionChecks:
  - {name: theirs, state: Pending, message: "", lastTransitionTime: "2026-11-27T11:00:00Z"}
  - {name: ours, state: STATE, message: "", lastTransitionTime: "2026-11-27T11:00:00Z", retryCount: 3, requeueAfterSeconds: 60}
`

func objects(t *testing.T, text string) []client.Object {
	t.Helper()
	var all []client.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// controllerOf is a controller of a cluster with the checks, a Workload, and its job, which has waited for an hour.
func controllerOf(t *testing.T, state, evicted string, edit func(*trainerv1alpha1.TrainJob)) *kueuecheck.Controller {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := trainerv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	since := metav1.NewTime(noon().Add(-time.Hour))
	job := &trainerv1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "job-uid"}}
	job.Status.Scheduling = &trainerv1alpha1.SchedulingStatus{
		Phase: trainerv1alpha1.PhaseWaiting, WaitingSince: &since, Reason: "rack-1 is full",
	}
	edit(job)
	made := objects(t, strings.NewReplacer("STATE", state, "EVICTED", evicted).Replace(workload))
	made = append(append(made, objects(t, checks)...), job)
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(made...).WithStatusSubresource(made...).Build()
	return &kueuecheck.Controller{
		Client: cluster,
		Cache:  cluster,
		Class:  class.Class{},
		Clock:  clocktesting.NewFakePassiveClock(noon()),
		After:  time.Minute,
	}
}

// statesOf returns the states of the checks of the Workload, by name.
func statesOf(t *testing.T, c *kueuecheck.Controller) map[string]map[string]any {
	t.Helper()
	found := objects(t, workload)[0].(*unstructured.Unstructured)
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		t.Fatal(err)
	}
	entries, _, _ := unstructured.NestedSlice(found.Object, "status", "admissionChecks")
	states := map[string]map[string]any{}
	for _, entry := range entries {
		state := entry.(map[string]any)
		states[state["name"].(string)] = state
	}
	return states
}

// The controller writes the state of its own checks, and nothing about other controllers' checks or of Workloads
// without quota.
func TestController_Answer(t *testing.T) {
	for name, c := range map[string]struct {
		state, evicted string
		edit           func(*trainerv1alpha1.TrainJob)
		want           string
	}{
		"a new check":               {"Pending", "False", func(*trainerv1alpha1.TrainJob) {}, "Ready"},
		"the job waits":             {"Ready", "False", func(*trainerv1alpha1.TrainJob) {}, "Retry"},
		"Kueue evicts it":           {"Pending", "True", func(*trainerv1alpha1.TrainJob) {}, "Pending"},
		"a job of its name":         {"Ready", "False", func(j *trainerv1alpha1.TrainJob) { j.UID = "another" }, "Ready"},
		"a job of MultiKueue's":     {"Ready", "False", func(j *trainerv1alpha1.TrainJob) { j.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") }, "Ready"},
		"a job that is not waiting": {"Ready", "False", func(j *trainerv1alpha1.TrainJob) { j.Status.Scheduling = nil }, "Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			controller := controllerOf(t, c.state, c.evicted, c.edit)
			key := types.NamespacedName{Namespace: "team-a", Name: "train"}
			if _, err := kueuecheck.Answer(t.Context(), controller, ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			states := statesOf(t, controller)
			ours, theirs := states["ours"], states["theirs"]
			if ours["state"] != c.want || theirs["state"] != "Pending" || theirs["message"] != "" {
				t.Errorf("ours is %v, theirs is %v, want %s and Pending", ours, theirs, c.want)
			}
			if c.want == "Retry" && (ours["requeueAfterSeconds"] != nil || ours["retryCount"] != int64(3) ||
				!strings.Contains(ours["message"].(string), "rack-1 is full") || ours["lastTransitionTime"] != "2026-11-27T12:00:00Z") {
				t.Errorf("ours is %v", ours)
			}
		})
	}
}

// An AdmissionCheck of Lockstep's becomes active, once; those of others are left alone.
func TestController_Activate(t *testing.T) {
	controller := controllerOf(t, "Pending", "False", func(*trainerv1alpha1.TrainJob) {})
	for _, check := range objects(t, checks) {
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(check)}
		var versions []string
		for range 2 {
			if _, err := kueuecheck.Activate(t.Context(), controller, request); err != nil {
				t.Fatal(err)
			}
			if err := controller.Client.Get(t.Context(), request.NamespacedName, check); err != nil {
				t.Fatal(err)
			}
			versions = append(versions, check.GetResourceVersion())
		}
		conditions, _, _ := unstructured.NestedSlice(check.(*unstructured.Unstructured).Object, "status", "conditions")
		active := len(conditions) == 1 && conditions[0].(map[string]any)["type"] == "Active" &&
			conditions[0].(map[string]any)["status"] == "True"
		if active != (check.GetName() == "ours") || versions[0] != versions[1] {
			t.Errorf("%s has conditions %v, in versions %v", check.GetName(), conditions, versions)
		}
	}
}
