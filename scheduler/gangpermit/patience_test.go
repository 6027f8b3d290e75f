package gangpermit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/topology"
)

// Members at Permit are rejected once no other has arrived for the grace, and not before.
func TestGangPermit_StandstillAtPermit(t *testing.T) {
	for name, test := range map[string]struct {
		own      string
		rejected time.Duration
	}{
		"the profile's grace": {"", time.Minute},
		"the gang's own":      {"5m", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, plugin := newFakeCluster(t, 4)
				w.annotations = map[string]string{topology.AnnotationStartPatience: test.own}
				for i := range 3 { // each of them arrives late, but not too late
					w.permit(t, plugin, i)
					time.Sleep(test.rejected * 2 / 3)
					synctest.Wait()
					if w.waiting[member(0).UID].rejected.Load() {
						t.Fatalf("the first member went back although member %d has come", i)
					}
				}
				time.Sleep(test.rejected / 2)
				synctest.Wait()
				for i := range 3 {
					if !w.waiting[member(i).UID].rejected.Load() {
						t.Errorf("member %d still waits", i)
					}
				}
			})
		})
	}
}

// A device that takes five minutes holds its gang up for five minutes, and ends no start.
func TestGangPermit_SlowPreparation(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		codes := prebind(t.Context(), plugin, 0, 1)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		expect(t, prebind(t.Context(), plugin, 2), 1, fwk.Success)
		expect(t, codes, 2, fwk.Success)
	})
}

// A member whose binding is refused is tried for as long as the others of its gang get nodes.
func TestGangPermit_BindingsOfOthersAreProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, plugin := newFakeCluster(t, 3)
		w.binder = binder{fails: 1 << 30, err: apierrors.NewTooManyRequests("busy", 1)}
		codes := make(chan fwk.Code, 1)
		go func() { codes <- plugin.Bind(t.Context(), cycle{}, member(0), "node").Code() }()
		for i := 1; i < 8; i++ {
			time.Sleep(40 * time.Second)
			go plugin.Bind(t.Context(), cycle{}, member(i), "node")
		}
		synctest.Wait()
		if len(codes) > 0 {
			t.Fatal("the binding was given up while another member got further")
		}
		time.Sleep(2 * time.Minute)
		expect(t, codes, 1, fwk.Error)
		began := time.Now()
		plugin.Bind(t.Context(), cycle{}, member(0), "node") // it is tried again, which is no progress
		if took := time.Since(began); took > 0 {
			t.Errorf("a member that failed before holds the others up for another %v", took)
		}
	})
}

// The API server bound the pod, and its answer was lost: the conflict that follows is a success if the pod is on that
// node.
func TestGangPermit_LostAnswer(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "m0", errors.New("already assigned"))
	for name, test := range map[string]struct {
		at   string
		want fwk.Code
	}{
		"on its node":     {"node", fwk.Success},
		"on another node": {"elsewhere", fwk.Error},
	} {
		t.Run(name, func(t *testing.T) {
			w, plugin := newFakeCluster(t, 3)
			pod := member(0)
			pod.Spec.NodeName = test.at
			if err := w.client.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
			w.binder = binder{fails: 1, err: conflict}
			if status := plugin.Bind(t.Context(), cycle{}, member(0), "node"); status.Code() != test.want {
				t.Errorf("it ends with %v, want %v", status, test.want)
			}
		})
	}
}
