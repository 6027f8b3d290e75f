package devices_test

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// The claims of a gang whose members have one each.
func BenchmarkHeld(b *testing.B) {
	for _, size := range []int{256, 1024, 4096} {
		group, members, objects := schedulertest.PairGang("runs", size, 1, "gpu")
		claims := make([]*resourcev1.ResourceClaim, size)
		for i, o := range objects {
			claims[i] = o.(*resourcev1.ResourceClaim)
			schedulertest.Allocate(members[i], claims[i], devicestest.Allocation(fmt.Sprint("node-", i), 1))
		}
		stock := new(devices.Shared).Stock(devices.NewFixed(nil, nil, claims))
		unit := snapshot.Unit{Group: group, Pods: members}
		b.Run(fmt.Sprintf("members=%d", size), func(b *testing.B) {
			for b.Loop() {
				if got := stock.Held(unit); got != int64(2*size) {
					b.Fatalf("%d devices", got)
				}
			}
		})
	}
}
