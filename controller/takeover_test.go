package controller_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
)

func noon() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) }

// leaseOf is a lease of Kubeflow Trainer that was renewed before noon.
func leaseOf(namespace, holder string, before time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trainer.kubeflow.org"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &holder,
			RenewTime:            &metav1.MicroTime{Time: noon().Add(-before)},
			LeaseDurationSeconds: new(int32(15)),
		},
	}
}

// No job gets two owners because a flag is missing, or names another namespace than that of the Kubeflow Trainer that works.
func TestMeetTrainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease    *coordinationv1.Lease
		takeOver string
		manage   string
		// refusal is a part of the error; empty for none. left is what remains to be taken over.
		refusal, left string
	}{
		"one that works":                    {lease: leaseOf("kubeflow", "a", time.Second), refusal: "a holds lease kubeflow/trainer.kubeflow.org; --take-over=kubeflow "},
		"one that works, to be taken over":  {lease: leaseOf("kubeflow", "a", time.Second), takeOver: "kubeflow", left: "kubeflow"},
		"one that works elsewhere":          {lease: leaseOf("ml", "a", time.Second), takeOver: "kubeflow", refusal: "--take-over=ml "},
		"one that works, and keeps its own": {lease: leaseOf("kubeflow", "a", time.Second), manage: "chosen"},
		"one that ended a while ago":        {lease: leaseOf("kubeflow", "a", 2*time.Minute)},
		"one that gave its lease up":        {lease: leaseOf("kubeflow", "", time.Second)},
		"none":                              {},
		"none any more, with its namespace": {takeOver: "gone"},
		"none yet":                          {takeOver: "kubeflow", left: "kubeflow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeflow"}})
			if c.lease != nil {
				if err := client.Tracker().Add(c.lease); err != nil {
					t.Fatal(err)
				}
			}
			options := config.Default()
			options.TakeOver = c.takeOver
			if c.manage != "" {
				options.Manage = c.manage
			}
			got, err := controller.MeetTrainer(t.Context(), client, options, noon())
			if refused := errors.Is(err, controller.ErrRival); refused != (c.refusal != "") || err != nil && !refused {
				t.Fatalf("the answer is %v, want %q", err, c.refusal)
			}
			if c.refusal != "" {
				if text := err.Error(); !strings.Contains(text, c.refusal) || strings.Contains(text, "\n") {
					t.Errorf("the refusal is %q, want a line with %q", text, c.refusal)
				}
				return
			}
			if got.TakeOver != c.left {
				t.Errorf("it takes over %q, want %q", got.TakeOver, c.left)
			}
		})
	}
}
