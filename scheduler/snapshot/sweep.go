package snapshot

import (
	"strconv"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// SweepOf returns the set of trials to which a gang belongs, the zero Sweep for none. Its name has the namespace in it,
// so that no tenant gains by naming another one's. A limit that cannot be read, or is below 1, is none: admission
// refuses it on TrainJobs, and a PodGroup of another owner must not wait for ever.
func SweepOf(group *schedulingv1beta1.PodGroup) contention.Sweep {
	if group == nil || group.Labels[topology.LabelSweep] == "" {
		return contention.Sweep{}
	}
	of := contention.Sweep{Name: group.Namespace + "/" + group.Labels[topology.LabelSweep]}
	if limit, err := strconv.ParseInt(group.Annotations[topology.AnnotationSweepParallelism], 10, 32); err == nil {
		of.Limit = max(0, int(limit))
	}
	return of
}
