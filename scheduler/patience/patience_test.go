package patience_test

import (
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/topology"
)

func TestClocks_RestartWithProgress(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	clocks := patience.NewClocks(clock)
	gang, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	step := func(after, want time.Duration) {
		t.Helper()
		clock.SetTime(clock.Now().Add(after))
		if left := clocks.Left(gang, time.Minute); left != want {
			t.Errorf("at %v the gang has %v left, want %v", clock.Now().Unix(), left, want)
		}
	}
	step(0, time.Minute)
	step(40*time.Second, 20*time.Second)
	clocks.Further(other, "m", patience.Placed)
	step(10*time.Second, 10*time.Second)
	clocks.Further(gang, "m", patience.Binding)
	step(0, time.Minute)
	step(10*time.Second, 50*time.Second)
	clocks.Further(gang, "m", patience.Placed) // it was sent back, and is tried again
	clocks.Further(gang, "m", patience.Binding)
	step(0, 50*time.Second)
	clocks.Begin(gang) // all of it starts again
	clocks.Further(gang, "m", patience.Placed)
	step(0, time.Minute)
	step(2*time.Minute, 0)
	clocks.Forget(gang)
	step(0, time.Minute)
}

func TestOf_AnnotationWins(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"5m": 5 * time.Minute, "": time.Minute, "soon": time.Minute, "10ms": time.Minute, "240h": time.Minute,
	} {
		group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{topology.AnnotationStartPatience: value},
		}}
		if got := patience.Of(group, time.Minute); got != want {
			t.Errorf("%q is %v, want %v", value, got, want)
		}
	}
	if got := patience.Of(nil, time.Minute); got != time.Minute {
		t.Errorf("without a group it is %v", got)
	}
}
