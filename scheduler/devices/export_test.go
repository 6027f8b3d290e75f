package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
)

// AtDesk returns a client whose reservations are written together.
func AtDesk(client kubernetes.Interface, chosen func(types.UID) *resourcev1.AllocationResult) kubernetes.Interface {
	return atDesk{client, &desk{chosen: chosen, clock: clock.RealClock{}}}
}

// Managed returns the manager that the in-tree plugin gets in place of the scheduler's own, and the stock to which it
// reports.
func Managed(own fwk.SharedDRAManager) (fwk.SharedDRAManager, *Stock) {
	shared := new(Shared)
	stock := func() *Stock { return shared.Stock(own) }
	return &manager{SharedDRAManager: own, stock: stock, settled: func(types.UID) {}}, stock()
}

// Settle reports to the stock that a pending allocation has been removed.
func Settle(s *Stock, claim types.UID, m fwk.SharedDRAManager) { s.settle(claim, m.ResourceClaims()) }
