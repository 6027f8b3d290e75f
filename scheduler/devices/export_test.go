package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// AtDesk returns a client whose reservations are written together.
func AtDesk(client kubernetes.Interface, chosen func(types.UID) *resourcev1.AllocationResult) kubernetes.Interface {
	return atDesk{client, &desk{chosen: chosen, clock: clock.RealClock{}}}
}
