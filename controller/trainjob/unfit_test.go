package trainjob_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/nodefit"
)

// gpus has each node of the job ask for so many GPUs.
func gpus(count string) func(*trainerv1alpha1.TrainJob) {
	return func(job *trainerv1alpha1.TrainJob) {
		job.Spec.Trainer = &trainerv1alpha1.Trainer{ResourcesPerNode: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)},
		}}
	}
}

// node has so many GPUs.
func node(name, count string) *corev1.Node {
	has := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

const tooMany = "nvidia.com/gpu: a pod asks for 16, and no node of this cluster has more than 8"

// A gang that no node holds gets an Event before its pods are created. Where there will be no other nodes, they are not
// created until one holds them.
func TestReconcile_GangThatNoNodeHolds(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(gpus("16")), node("small", "8"))
	w.Nodes = nodefit.Nodes{Cache: w.Client, Live: w.Client, Complete: true}
	for range 3 {
		if again := w.settle().RequeueAfter; again.Seconds() != 30 || w.jobSet() != nil || w.podGroup() != nil {
			t.Fatalf("it is looked at after %v; its JobSet is %v", again, w.jobSet())
		}
	}
	if got := w.event(); !strings.HasPrefix(got, "Warning NoNodeFits "+tooMany) || w.event() != "" {
		t.Errorf("its Event is %q", got)
	}
	if status := w.job().Status.Scheduling; status == nil || status.Phase != trainerv1alpha1.PhaseBlocked ||
		status.Reason != tooMany+"; its pods are made when a node holds them" {
		t.Errorf("status.scheduling is %+v", status)
	}
	if err := w.Client.Create(t.Context(), node("large", "16")); err != nil {
		t.Fatal(err)
	}
	w.start()
	if w.jobSet() == nil || w.podGroup() == nil {
		t.Error("with a node that holds it there is no JobSet")
	}
}

// Where other nodes may be added the pods are created, and the owner gets the Event all the same.
func TestReconcile_GangThatNoNodeHoldsYet(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(gpus("16")), node("small", "8"))
	w.Nodes = nodefit.Nodes{Cache: w.Client, Live: w.Client}
	w.start()
	if w.jobSet() == nil {
		t.Error("there is no JobSet")
	}
	if got := w.event(); got != "Warning NoNodeFits "+tooMany {
		t.Errorf("its Event is %q", got)
	}
}
