package whatif

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Where JobSet writes which of its Jobs a pod is of.
const (
	labelReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex      = "jobset.sigs.k8s.io/job-index"
)

// missing says why a gang is incomplete.
func missing(g *gang) *Missing {
	out := &Missing{Needed: g.minCount(), Exist: len(g.waiting) + len(g.running), Leaving: len(g.leaving)}
	gates := make(map[string]int)
	for _, pod := range g.waiting {
		for _, gate := range pod.Spec.SchedulingGates {
			gates[gate.Name]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		out.Gates = append(out.Gates, Gate{Name: name, Pods: gates[name]})
	}
	if out.Exist < out.Needed {
		out.Indexes = unclaimed(slices.Concat(g.waiting, g.running), out.Needed)
	}
	return out
}

// unclaimed are the completion indexes below n that no pod has; nil if more than these distinguish the pods.
func unclaimed(pods []*corev1.Pod, n int) []int {
	free := make(map[int]bool, n)
	for i := range n {
		free[i] = true
	}
	for _, pod := range pods {
		first := pods[0]
		index, err := strconv.Atoi(cmp.Or(
			pod.Labels[batchv1.JobCompletionIndexAnnotation], pod.Annotations[batchv1.JobCompletionIndexAnnotation]))
		if err != nil || !free[index] ||
			pod.Labels[labelReplicatedJob] != first.Labels[labelReplicatedJob] ||
			pod.Labels[labelJobIndex] != first.Labels[labelJobIndex] {
			return nil
		}
		delete(free, index)
	}
	return slices.Sorted(maps.Keys(free))
}
