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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
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

// unofferedTo is unoffered for a job that changes while it is suspended: it is rendered anew when it is resumed.
func (v *Validator) unofferedTo(ctx context.Context, job *trainerv1alpha1.TrainJob, found resolve.Found) []string {
	if job.Spec.Suspend == nil || !*job.Spec.Suspend {
		return nil
	}
	planned, err := plan.New(job, found.Runtime, found.Options(v.Options))
	if err != nil {
		return nil // it is refused, or was at fault before
	}
	return v.unoffered(ctx, planned.JobSet)
}

// unoffered warns of resources that no node has, or of which no node has as many as one pod asks for: most likely a name is misspelled, or the
// device plugin is not installed. It is no refusal, because such a node may come. What cannot be found out is not worth a warning.
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
	most := map[corev1.ResourceName]resource.Quantity{}
	for i := range nodes.Items {
		for name, quantity := range nodes.Items[i].Status.Capacity {
			if before := most[name]; quantity.Cmp(before) > 0 {
				most[name] = quantity
			}
		}
	}
	maps.DeleteFunc(missing, func(name corev1.ResourceName, want resource.Quantity) bool {
		offered := most[name]
		return want.Cmp(offered) <= 0
	})
	if len(missing) > 0 {
		v.dropDevices(ctx, missing)
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		want, offered := missing[name], most[name]
		warning := fmt.Sprintf("%s: no node of this cluster offers it; the job waits until one does", name)
		if !offered.IsZero() {
			warning = fmt.Sprintf(
				"%s: a pod asks for %s, and no node of this cluster has more than %s; the job waits until one does",
				name,
				want.String(),
				offered.String(),
			)
		}
		warnings = append(warnings, warning)
	}
	return warnings
}

// dropDevices leaves out the extended resources that are devices of a class.
func (v *Validator) dropDevices(ctx context.Context, missing map[corev1.ResourceName]resource.Quantity) {
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

// asked is the most that one pod of a JobSet asks for of each extended resource: those that only some nodes have. Those with the prefix of
// DeviceClasses need none.
func asked(jobSet *jobsetv1alpha2.JobSet) map[corev1.ResourceName]resource.Quantity {
	most := map[corev1.ResourceName]resource.Quantity{}
	for i := range jobSet.Spec.ReplicatedJobs {
		pod := &corev1.Pod{Spec: *jobSet.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.DeepCopy()}
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for j := range containers {
				limited := &containers[j].Resources
				limited.Requests = overlay(limited.Limits, limited.Requests) // as the API server completes them
			}
		}
		for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			if before := most[name]; strings.Contains(string(name), "/") && quantity.Cmp(before) > 0 &&
				!strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix) {
				most[name] = quantity
			}
		}
	}
	return most
}

// overlay returns the quantities of both lists, those of above where both have one.
func overlay(below, above corev1.ResourceList) corev1.ResourceList {
	both := maps.Clone(below)
	if both == nil {
		both = corev1.ResourceList{}
	}
	maps.Copy(both, above)
	return both
}
