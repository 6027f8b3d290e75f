package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/topology"
)

// work returns the needs of a job with automatic resources, and the choices that were made already. The reason is not
// empty if they are not known.
func (d *draft) work() (work sizing.Work, reason string) {
	resources, jobs := nodeResources(d.spec), d.nodeJobs()
	switch {
	case d.runtime.Spec.MLPolicy == nil:
		return sizing.Work{}, "runtime " + d.runtime.Name + " has no mlPolicy, and resourcesPerNode has no effect without one"
	case len(jobs) == 0:
		return sizing.Work{}, "runtime " + d.runtime.Name + " has no container " + trainerv1alpha1.NodeName + " that trains"
	case len(resources.Claims) > 0:
		return sizing.Work{}, "the pods of runtime " + d.runtime.Name + " have devices by claims"
	}
	if work, reason = d.memory(); reason != "" {
		return sizing.Work{}, reason
	}
	var pods []*corev1.PodSpec
	for _, i := range jobs {
		pod := &d.spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		if key := unkept(pod); key != "" {
			return sizing.Work{}, "the job's pods select nodes by label " + key + ", which the controller does not keep in memory"
		}
		pods = append(pods, pod)
	}
	work.Admits = func(node sizing.Node) bool { return admitsAll(node, pods) }
	work.Resource = gpuName(resources.Limits)
	if work.Resource == "" {
		work.Resource = gpuName(resources.Requests)
	}
	work.Nodes = int64(ptr.Deref(trainerOf(d.job).NumNodes, 0))
	work.PerNode = int64(ptr.Deref(d.input.Processes, 0))
	if mpi := d.input.Policy.MPI; mpi != nil && work.PerNode == 0 && ptr.Deref(mpi.NumProcPerNode, 1) > 1 {
		work.PerNode = int64(*mpi.NumProcPerNode)
	}
	d.stretchWork(&work)
	if work.MostNodes > 0 && work.Nodes > work.MostNodes ||
		work.MostDevices > 0 && max(1, work.Nodes)*work.PerNode > work.MostDevices {
		work.MostNodes, work.MostDevices = 0, 0 // validation refuses the given numbers, with its own message
	}
	return work, ""
}

// stretchWork has an elastic job fit on its fewest nodes: the more there are, the less each of them holds.
func (d *draft) stretchWork(work *sizing.Work) {
	bound := func(key string) int64 {
		number, err := strconv.ParseInt(d.jobWish(key), 10, 32)
		if err != nil {
			return 0 // it is not there, or validation refuses it
		}
		return number
	}
	least, most := bound(topology.AnnotationMinNodes), bound(topology.AnnotationMaxNodes)
	switch {
	case least > 0:
		work.Nodes = least
	case most > 0 && work.Nodes == 0 && (work.MostNodes == 0 || most < work.MostNodes):
		work.MostNodes, work.Bound = most, topology.AnnotationMaxNodes
	}
}

// memory returns the job's memory model: that of its annotation, or that of its framework.
func (d *draft) memory() (work sizing.Work, reason string) {
	measurer, measures := d.framework.(framework.Measurer)
	if measures {
		work, reason = measurer.Work(d.input)
	}
	described := d.jobWish(topology.AnnotationModel)
	if described == "" {
		if !measures {
			reason = "nothing says how large the model is; add annotation " + topology.AnnotationModel + ", such as parameters=8B,sharding=fsdp"
		}
		return work, reason
	}
	training, err := sizing.Parse(described)
	if err != nil {
		return sizing.Work{}, fmt.Sprintf("annotation %s: %v", topology.AnnotationModel, err)
	}
	work.About = "the model of annotation " + topology.AnnotationModel
	work.Mend = "batch, sequence and activations in that annotation change what it needs"
	if training.Sharding == sizing.Unsharded {
		work.Mend = "if the trainer shards its model, add sharding=fsdp (or zero1 to zero3) to that annotation"
	}
	work.On = func(int64) sizing.Training { return training }
	return work, ""
}

// admitsAll reports whether pods may be on a node, by their node selectors, required affinities and tolerations.
func admitsAll(node sizing.Node, pods []*corev1.PodSpec) bool {
	there := &corev1.Node{}
	there.Name, there.Labels = node.Name, node.Labels
	for _, pod := range pods {
		required := nodeaffinity.NewRequiredNodeAffinity(pod.NodeSelector, pod.Affinity)
		if matches, err := required.Match(there); err != nil || !matches {
			return false
		}
		_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(
			klog.Background(),
			node.Taints,
			pod.Tolerations,
			keepsOut,
			false,
		)
		if untolerated {
			return false
		}
	}
	return true
}

// keepsOut reports whether a taint bars new pods from a node.
func keepsOut(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// unkept returns a label by which pods select nodes and which Fleet does not store; empty for none.
func unkept(pod *corev1.PodSpec) string {
	for _, key := range slices.Sorted(maps.Keys(pod.NodeSelector)) {
		if strings.HasPrefix(key, sizing.UnkeptLabels) {
			return key
		}
	}
	if pod.Affinity == nil || pod.Affinity.NodeAffinity == nil ||
		pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if strings.HasPrefix(expression.Key, sizing.UnkeptLabels) {
				return expression.Key
			}
		}
	}
	return ""
}
