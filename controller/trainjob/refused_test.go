package trainjob_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/podsecurity"
	"github.com/lockstep-project/lockstep/topology"
)

// A job with pods that its namespace refuses gets an Event as soon as the JobSet exists, whether it is a gang or not.
func TestReconcile_PodsThatTheNamespaceRefuses(t *testing.T) {
	for name, options := range map[string]plan.Options{"a gang": gang(), "no gang": {}} {
		t.Run(name, func(t *testing.T) {
			job := trainJob()
			w := newFixture(t, options, torch(), job, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: job.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			}})
			var err error
			if w.Levels, err = podsecurity.New(w.Client, w.clock); err != nil {
				t.Fatal(err)
			}
			w.start()
			const want = "enforces Pod Security restricted, which refuses the pods of node: allowPrivilegeEscalation != false"
			status := w.job().Status.Scheduling
			if status == nil || status.Phase != trainerv1alpha1.PhaseWaiting || !strings.Contains(status.Reason, want) {
				t.Errorf("status.scheduling is %+v", status)
			}
			if got := w.event(); !strings.HasPrefix(got, "Warning PodsRefused ") || !strings.Contains(got, want) {
				t.Errorf("its Event is %q", got)
			}
		})
	}
}

func TestReconcile_RefusedJobIsNotRetried(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Annotations = map[string]string{topology.AnnotationSpares: "some"}
	}))
	if _, err := w.reconcile(); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Fatalf("error %v, want a terminal one", err)
	}
	if event := w.event(); !strings.Contains(event, topology.AnnotationSpares) {
		t.Errorf("event %q, want one that names the annotation", event)
	}
	if w.jobSet() != nil || w.podGroup() != nil {
		t.Error("a refused job was rendered")
	}
}
