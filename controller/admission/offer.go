package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// KeepOffers is a transform of the cache that keeps of a node which resources it has, and of other objects all.
func KeepOffers(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity},
	}, nil
}

// unoffered warns of resources that no node has: most likely a name is misspelled, or the device plugin is not installed. It is no refusal,
// because such a node may come. What cannot be found out is not worth a warning.
func (v *Validator) unoffered(ctx context.Context, jobSet *jobsetv1alpha2.JobSet) []string {
	missing := asked(jobSet)
	if len(missing) == 0 || v.Nodes == nil {
		return nil
	}
	var nodes corev1.NodeList
	if err := v.Nodes.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil { // they are only looked at
		klog.FromContext(ctx).Error(err, "Listing nodes for a warning")
		return nil
	}
	if len(nodes.Items) == 0 {
		return nil
	}
	for i := range nodes.Items {
		for name, quantity := range nodes.Items[i].Status.Capacity {
			if !quantity.IsZero() {
				delete(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		v.dropDevices(ctx, missing)
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		warnings = append(
			warnings,
			fmt.Sprintf("%s: no node of this cluster offers it; the job waits until one does", name),
		)
	}
	return warnings
}

// dropDevices leaves out the extended resources that are devices of a class.
func (v *Validator) dropDevices(ctx context.Context, missing map[corev1.ResourceName]bool) {
	var classes resourcev1.DeviceClassList
	err := v.Live.List(ctx, &classes)
	switch {
	case meta.IsNoMatchError(err):
		return
	case err != nil:
		klog.FromContext(ctx).Error(err, "Listing DeviceClasses for a warning")
		clear(missing)
		return
	}
	for i := range classes.Items {
		if name := classes.Items[i].Spec.ExtendedResourceName; name != nil {
			delete(missing, corev1.ResourceName(*name))
		}
	}
}

// asked are the extended resources for which pods of a JobSet ask: those that only some nodes have. Those with the prefix of DeviceClasses
// need none.
func asked(jobSet *jobsetv1alpha2.JobSet) map[corev1.ResourceName]bool {
	names := map[corev1.ResourceName]bool{}
	for i := range jobSet.Spec.ReplicatedJobs {
		pod := &jobSet.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
				for name, quantity := range list {
					if strings.Contains(string(name), "/") && !quantity.IsZero() &&
						!strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix) {
						names[name] = true
					}
				}
			}
		}
	}
	return names
}
