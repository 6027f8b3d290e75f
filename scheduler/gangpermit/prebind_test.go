package gangpermit_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
)

// prebind sends members to the last barrier and returns a channel with the code that each receives.
func prebind(ctx context.Context, plugin *gangpermit.GangPermit, members ...int) <-chan fwk.Code {
	told := make(chan fwk.Code, len(members))
	for _, i := range members {
		go func() { told <- plugin.PreBind(ctx, cycle{}, member(i), "node").Code() }()
	}
	return told
}

// expect reads the codes that n members receive.
func expect(t *testing.T, told <-chan fwk.Code, n int, want fwk.Code) {
	t.Helper()
	for range n {
		if code := <-told; code != want {
			t.Errorf("a member is told %v, want %v", code, want)
		}
	}
}

// bubble runs a test in a cluster of three members that were let go together, with a clock of its own.
func bubble(t *testing.T, test func(t *testing.T, w *fakeCluster, plugin *gangpermit.GangPermit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, plugin := newFakeCluster(t, 3)
		w.submit(t, plugin, 0, 1, 2)
		test(t, w, plugin)
	})
}

func TestGangPermit_PreBindWaitsForAllMembers(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		told := prebind(t.Context(), plugin, 0, 1)
		synctest.Wait()
		if len(told) > 0 {
			t.Fatal("a member goes before all are ready")
		}
		expect(t, prebind(t.Context(), plugin, 2), 1, fwk.Success)
		expect(t, told, 2, fwk.Success)
		// A pod that is not among them does not wait: a single pod, or one more member than the gang needs.
		expect(t, prebind(t.Context(), plugin, 7), 1, fwk.Success)
		// A later failure of one of them does not concern the others.
		plugin.Unreserve(t.Context(), cycle{}, member(0), "node")
	})
}

func TestGangPermit_PreBindRejectsAfterLoss(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		told := prebind(t.Context(), plugin, 0)
		synctest.Wait()
		plugin.Unreserve(t.Context(), cycle{}, member(1), "node") // its devices could not be allocated
		expect(t, told, 1, fwk.Unschedulable)
		expect(t, prebind(t.Context(), plugin, 2), 1, fwk.Unschedulable) // it was late
		for _, i := range []int{0, 2} {
			plugin.Unreserve(t.Context(), cycle{}, member(i), "node")
		}
		// The next time all of them pass.
		w.submit(t, plugin, 0, 1, 2)
		expect(t, prebind(t.Context(), plugin, 0, 1, 2), 3, fwk.Success)
	})
}

// Two members more than the gang needs pass Permit, and wait for those that it needs: one is lost meanwhile, which
// concerns no other.
func TestGangPermit_PreBindHoldsSurplusMembers(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		w.submit(t, plugin, 3, 4, 5)
		surplus := prebind(t.Context(), plugin, 3)
		plugin.Unreserve(t.Context(), cycle{}, member(4), "node")
		nowhere := make(chan fwk.Code, 1) // its node is deleted while it waits
		go func() { nowhere <- plugin.PreBind(t.Context(), cycle{}, member(5), "deleted").Code() }()
		told := prebind(t.Context(), plugin, 0, 1)
		synctest.Wait()
		if len(surplus)+len(told)+len(nowhere) > 0 {
			t.Fatal("a member goes before all that the gang needs are ready")
		}
		expect(t, prebind(t.Context(), plugin, 2), 1, fwk.Success)
		expect(t, told, 2, fwk.Success)
		expect(t, surplus, 1, fwk.Success)
		expect(t, nowhere, 1, fwk.Unschedulable)
	})
	bubble(t, func(t *testing.T, w *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		w.submit(t, plugin, 3)
		surplus := prebind(t.Context(), plugin, 3)
		synctest.Wait()
		plugin.Unreserve(t.Context(), cycle{}, member(1), "node") // one that it needs
		expect(t, surplus, 1, fwk.Unschedulable)
	})
}

func TestGangPermit_PreBindEndsAfterGrace(t *testing.T) {
	bubble(t, func(t *testing.T, _ *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		expect(t, prebind(t.Context(), plugin, 0, 1), 2, fwk.Unschedulable) // after the grace
	})
	bubble(t, func(t *testing.T, _ *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		told := prebind(ctx, plugin, 0, 1)
		synctest.Wait()
		cancel() // the scheduler ends
		expect(t, told, 2, fwk.Unschedulable)
	})
}

// A surplus member whose volume takes minutes does not count for the next start of its gang when its own has failed.
func TestGangPermit_FollowerOfAFailedStartDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, w *fakeCluster, plugin *gangpermit.GangPermit) {
		t.Helper()
		w.submit(t, plugin, 3) // follows the start of 0, 1 and 2
		for i := range 3 {     // the volume of 1 fails: all return
			plugin.Unreserve(t.Context(), cycle{}, member(i), "node")
		}
		if codes := w.submit(t, plugin, 0, 2); !slices.Equal(codes, []fwk.Code{fwk.Wait, fwk.Wait}) {
			t.Errorf("codes %v: two members start of a gang that needs three", codes)
		}
		expect(t, prebind(t.Context(), plugin, 3), 1, fwk.Unschedulable)
	})
}
