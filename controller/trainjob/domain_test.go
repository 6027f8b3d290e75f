package trainjob_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// connected returns a job with two nodes that train by NVLink.
func connected(wish string) *trainerv1alpha1.TrainJob {
	return trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Annotations = map[string]string{topology.AnnotationMNNVL: wish}
		job.Spec.Trainer = &trainerv1alpha1.Trainer{ResourcesPerNode: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
		}}
	})
}

func nvlink() plan.Options { return plan.Options{Gang: true, ComputeDomains: true} }

// domain is the ComputeDomain of the job's name; nil if there is none.
func (w *fixture) domain() *unstructured.Unstructured {
	w.t.Helper()
	domain := &unstructured.Unstructured{}
	domain.SetGroupVersionKind(plan.ComputeDomainKind())
	if !w.get(domain) {
		return nil
	}
	return domain
}

// hold gives an object a finalizer, or takes it away.
func (w *fixture) hold(object client.Object, finalizers ...string) {
	w.t.Helper()
	object.SetFinalizers(finalizers)
	if err := w.Client.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// The daemons by which pods reach each other are deleted with their ComputeDomain: it is created before the pods and
// deleted after them.
func TestComputeDomain_OutlivesItsPods(t *testing.T) {
	w := newFixture(t, nvlink(), torch(), connected("required"))
	w.settle()
	w.wantWrites(
		"at the start",
		"create FrozenTrainJob",
		"create ConfigMap train-runtime-snapshot",
		"apply Workload",
		"apply PodGroup",
		"apply ComputeDomain",
		"apply JobSet",
	)
	w.hold(w.podGroup(), "scheduling.k8s.io/podgroup-protection") // until its pods have ended
	w.hold(w.domain(), "resource.nvidia.com/computeDomain")       // until its daemons have
	w.settle()
	w.wantWrites("when its JobSet is seen", "patch TrainJob status")
	w.settle()
	w.wantWrites("while it runs")

	w.change(suspend(true))
	w.settle()
	w.wantWrites(
		"on suspension",
		"patch JobSet",
		"patch TrainJob status",
		"delete PodGroup",
		"delete Workload",
	)
	if got := w.settle().RequeueAfter; got == 0 {
		t.Error("it does not come back")
	}
	w.wantWrites("while pods are left")
	w.hold(w.podGroup())
	w.settle()
	w.wantWrites("after the pods have ended", "delete ComputeDomain")

	w.change(suspend(false))
	if got := w.settle().RequeueAfter; got == 0 {
		t.Error("it does not come back")
	}
	w.wantWrites("while daemons are left", "apply Workload", "apply PodGroup", "patch TrainJob status")
	w.hold(w.domain())
	w.settle()
	w.wantWrites("after the daemons have ended", "apply ComputeDomain", "apply JobSet", "patch TrainJob status")
}

func TestComputeDomain_DeletedWithinAMinute(t *testing.T) {
	w := newFixture(t, nvlink(), torch(), connected("preferred"))
	w.settle()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{
			{
				Type:               "Completed",
				Status:             "True",
				Reason:             "AllJobsCompleted",
				LastTransitionTime: metav1.NewTime(created()),
			},
		}
	})
	if got := w.settle().RequeueAfter; got != 45*time.Second {
		t.Errorf("comes back after %v, want 45s", got)
	}
	w.clock.SetTime(created().Add(45 * time.Second))
	w.settle()
	w.wantWrites(
		"45 s after the end",
		"delete PodGroup",
		"delete Workload",
		"delete ConfigMap train-runtime-snapshot",
		"delete FrozenTrainJob",
	)
	w.settle()
	w.wantWrites("then", "delete ComputeDomain")
	w.settle()
	w.wantWrites("when all is gone")
}

// A user's deletion of the job deletes no domain under running pods: the garbage collector waits for all its owners,
// and the group, which Kubernetes protects until its pods have ended, is one.
func TestComputeDomain_OwnedByGroupsToo(t *testing.T) {
	w := newFixture(t, nvlink(), torch(), connected("required"))
	w.start()
	group := w.podGroup()
	group.UID = "another" // as after a restart that renewed it
	if err := w.Client.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.wantWrites("on another group", "apply ComputeDomain")
	owners := map[string]bool{}
	for _, owner := range w.domain().GetOwnerReferences() {
		owners[owner.Kind+" "+string(owner.UID)] = owner.Controller != nil && *owner.Controller
	}
	if diff := cmp.Diff(map[string]bool{"TrainJob train-uid": true, "PodGroup another": false}, owners); diff != "" {
		t.Errorf("owners, and who controls (-want +got):\n%s", diff)
	}
}

func TestComputeDomain_SurvivesRestart(t *testing.T) {
	w := newFixture(t, nvlink(), torch(), connected("required"))
	w.start()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) { status.Restarts = 1 })
	w.settle()
	w.wantWrites("on the restart")
}

func TestComputeDomain_ForeignIsNotTaken(t *testing.T) {
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(plan.ComputeDomainKind())
	theirs.SetNamespace(namespace)
	theirs.SetName("train")
	w := newFixture(t, nvlink(), torch(), connected("required"), theirs)
	if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "ComputeDomain team-a/train: it exists") {
		t.Errorf("error %v, want one that names the ComputeDomain", err)
	}
	if w.jobSet() != nil {
		t.Error("pods start in somebody else's domain")
	}
	w.change(suspend(true))
	_, _ = w.reconcile()
	if w.domain() == nil {
		t.Error("somebody else's domain was deleted")
	}
}

func TestComputeDomain_WithoutDriver(t *testing.T) {
	w := newFixture(t, gang(), torch(), connected("required"))
	if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "ComputeDomains") || w.jobSet() != nil {
		t.Errorf("error %v, JobSet %v; want a reason, and no pods", err, w.jobSet())
	}
	w = newFixture(t, gang(), torch(), connected("preferred"))
	w.settle()
	w.wantWrites(
		"of what only prefers NVLink",
		"create FrozenTrainJob", "create ConfigMap train-runtime-snapshot",
		"apply Workload",
		"apply PodGroup",
		"apply JobSet",
	)
}

// Pod templates are immutable: a job that was queued before a driver was installed starts without a domain.
func TestComputeDomain_QueuedJobStartsWithout(t *testing.T) {
	w := newFixture(t, gang(), torch(), connected("preferred"))
	w.change(suspend(true))
	w.settle()
	w.Options.ComputeDomains = true
	w.change(suspend(false))
	w.settle()
	if w.domain() != nil || w.jobSet() == nil || plan.DecisionsOf(w.jobSet()).ComputeDomain {
		t.Errorf("the domain is %v, want none", w.domain())
	}
}
