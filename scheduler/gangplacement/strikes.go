package gangplacement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/topology"
)

// The rules that bar nodes for the failures and refusals of pods there.
const (
	// ruleQuarantine is about nodes that have too many strikes.
	ruleQuarantine = "quarantine (pods failed or were refused there)"
	// ruleTrial is about the node on which ranks of the gang failed, and failed again.
	ruleTrial = "two failures of the gang there"
)

// rankStruck notes a rank that failed. An exit code of the program, or an excess of its memory limit, is the program's
// fault.
func (s *nodeSuspicion) rankStruck(pod *corev1.Pod, gang types.UID, codes topology.ExitCodes) {
	if !failedByItself(pod, codes) {
		return
	}
	begin, end := lifeOf(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strikes.Failed(pod.Spec.NodeName, pod.Namespace, gang, end.Sub(begin), earlier(end, s.clock.Now()))
}

// lifeOf returns the beginning and the end of the pod's container that ended last: a scheduler that has just begun
// hears of pods that ended long ago.
func lifeOf(pod *corev1.Pod) (begin, end time.Time) {
	for _, e := range ended(pod) {
		if e.FinishedAt.After(end) {
			begin, end = e.StartedAt.Time, e.FinishedAt.Time
		}
	}
	return begin, end
}

// earlier returns the instant, or now if it is unknown or in the future.
func earlier(at, now time.Time) time.Time {
	if at.IsZero() || at.After(now) {
		return now
	}
	return at
}

// failedByItself reports whether some container of the pod ended with an exit code that says nothing about its cause.
func failedByItself(pod *corev1.Pod, codes topology.ExitCodes) bool {
	return slices.ContainsFunc(ended(pod), func(e *corev1.ContainerStateTerminated) bool {
		return e.ExitCode != 0 && e.Reason != "OOMKilled" && codes.Action(e.ExitCode) != topology.ExitFatal
	})
}

// ended are the containers of the pod that have ended.
func ended(pod *corev1.Pod) []*corev1.ContainerStateTerminated {
	var out []*corev1.ContainerStateTerminated
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if status.State.Terminated != nil {
				out = append(out, status.State.Terminated)
			}
		}
	}
	return out
}

// barStruck adds the nodes in quarantine, and the one that the gang starts without, unless the gang tolerates that.
// Callers hold mu.
func (s *nodeSuspicion) barStruck(barred map[string]string, q question) map[string]string {
	quarantine := nodehealth.Mark{Key: topology.KeyUnhealthy, Value: "Quarantine"}
	if slices.ContainsFunc(q.waiting, quarantine.Tolerated) {
		return barred
	}
	metrics.Quarantined.Set(float64(len(s.strikes.Quarantined("", len(q.parent.Nodes), q.began))))
	for _, node := range s.strikes.Quarantined(q.group.Namespace, len(q.parent.Nodes), q.began) {
		barred = bar(barred, node, ruleQuarantine)
	}
	if node := s.strikes.Avoids(q.group.UID); node != "" {
		barred = bar(barred, node, ruleTrial)
	}
	return barred
}

// planned notes the plan of a gang for the present fleet. If it leaves out the node that the gang avoids, the gang's
// trial begins.
func (s *nodeSuspicion) planned(q question, plan *plan) {
	if q.fleet != asItIs || len(q.running) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if node := s.strikes.Avoids(q.group.UID); node != "" && !plan.uses(node) {
		s.strikes.Started(q.group.UID, q.began)
	}
}

// forHealth reports whether a node is barred for the failures and refusals of pods there.
func forHealth(rule string) bool { return rule == ruleQuarantine || rule == ruleTrial }
