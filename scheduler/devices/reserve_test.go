package devices_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// byName lets the members of a group share a device by an ordinary claim that each names. It is reserved for every pod.
func byName(group *schedulingv1beta1.PodGroup, members []*corev1.Pod) *resourcev1.ResourceClaim {
	claim := shares(group, nil)
	claim.OwnerReferences, group.Spec.ResourceClaims, group.Status.ResourceClaimStatuses = nil, nil, nil
	for _, pod := range members {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "domain", ResourceClaimName: &claim.Name}}
	}
	return claim
}

// Members of a gang that share a claim are bound side by side, and all write to it: its allocation, and the members for
// which it is reserved. Each write names the version that it changes. No write is refused for another one, the gang
// starts at its first attempt, and changes that arrive during a write are written with the next one.
func TestReserve_MembersWriteTheirClaimTogether(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]func(*schedulingv1beta1.PodGroup, []*corev1.Pod) *resourcev1.ResourceClaim{
		"by the group's claim": shares,
		"by name":              byName,
	} {
		for _, size := range []int{2, 18, resourcev1.ResourceClaimReservedForMaxSize} {
			t.Run(fmt.Sprint(name, ", ", size), func(t *testing.T) {
				group, members := schedulertest.Gang("shares", size, "")
				group.Annotations = nil
				claim := share(group, members)
				c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, size), fabric(1), claim)
				w := c.CountWrites()
				slow := func(clienttesting.Action) (bool, runtime.Object, error) {
					time.Sleep(50 * time.Millisecond)
					return false, nil, nil
				}
				c.PrependReactor("update", "resourceclaims", slow)
				c.Start(t)
				c.Create(t, group, members)
				c.WaitBound(t, members)
				if refused := w.ByRequest()["patch pods/status"]; refused > 0 {
					t.Errorf("%d members were refused", refused)
				}
				if writes := w.ByRequest()["update resourceclaims/status"]; writes > 16 {
					t.Errorf("%d writes of the claim's status", writes)
				}
				written, err := c.ResourceV1().ResourceClaims(schedulertest.Namespace).
					Get(t.Context(), claim.Name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				want := size
				if group.Spec.ResourceClaims != nil {
					want = 1
				}
				if got := len(written.Status.ReservedFor); got != want || written.Status.Allocation == nil {
					t.Errorf("the claim is reserved for %d, want %d; devices: %v", got, want, written.Status.Allocation)
				}
			})
		}
	}
}
