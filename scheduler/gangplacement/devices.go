package gangplacement

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// followDevices reports to the queue changes that may help a gang: devices that are published, and devices that are
// given back.
func followDevices(informers informers.SharedInformerFactory, queue *waiting.Queue) error {
	changed := func(any) { queue.Settling() }
	resources := informers.Resource().V1()
	published := cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
	}
	released := cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(old, now any) {
			before, ok := old.(*resourcev1.ResourceClaim)
			after, same := now.(*resourcev1.ResourceClaim)
			if ok && same && before.Status.Allocation != nil && after.Status.Allocation == nil {
				queue.Settling()
			}
		},
		DeleteFunc: changed,
	}
	for _, of := range []struct {
		informer cache.SharedIndexInformer
		follow   cache.ResourceEventHandlerFuncs
	}{
		{resources.ResourceSlices().Informer(), published},
		{resources.DeviceClasses().Informer(), published},
		{resources.ResourceClaims().Informer(), released},
	} {
		if _, err := of.informer.AddEventHandler(of.follow); err != nil {
			return fmt.Errorf("watching devices: %w", err)
		}
	}
	return nil
}
