package gangplacement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// followDevices reports to the queue changes that may help a gang: devices that are published, and devices that are
// given back. The stock hears of pods and groups that leave their claims behind.
func followDevices(informers informers.SharedInformerFactory, queue *waiting.Queue, stock *devices.Stock) error {
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
		{informers.Scheduling().V1beta1().PodGroups().Informer(), cache.ResourceEventHandlerFuncs{DeleteFunc: stock.Departed}},
		{informers.Core().V1().Pods().Informer(), cache.ResourceEventHandlerFuncs{
			DeleteFunc: stock.Departed,
			UpdateFunc: func(old, now any) {
				before, ok := old.(*corev1.Pod)
				after, same := now.(*corev1.Pod)
				if ok && same && !snapshot.Ended(before) && snapshot.Ended(after) {
					stock.Departed(after)
				}
			},
		}},
	} {
		if _, err := of.informer.AddEventHandler(of.follow); err != nil {
			return fmt.Errorf("watching devices: %w", err)
		}
	}
	return nil
}

// consumers tells which consumers of claims may still use them: pods that have not ended, PodGroups that exist, and all
// others.
func consumers(informers informers.SharedInformerFactory) devices.Lives {
	pods, groups := informers.Core().V1().Pods().Lister(), informers.Scheduling().V1beta1().PodGroups().Lister()
	return func(namespace string, of resourcev1.ResourceClaimConsumerReference) bool {
		switch {
		case of.APIGroup == corev1.GroupName && of.Resource == "pods":
			pod, err := pods.Pods(namespace).Get(of.Name)
			return err == nil && pod.UID == of.UID && !snapshot.Ended(pod)
		case of.APIGroup == schedulingv1beta1.GroupName && of.Resource == "podgroups":
			group, err := groups.PodGroups(namespace).Get(of.Name)
			return err == nil && group.UID == of.UID
		}
		return true
	}
}
