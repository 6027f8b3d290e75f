package gangplacement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// ruleUnwanted is the rule that bars a node from a gang.
const ruleUnwanted = "an exit code of a rank there"

// unwantedFor is the time for which a node is barred to a gang after an exit code that asks for another node.
const unwantedFor = time.Hour

// rankFailed counts a failed rank against its node, and bars the node to its gang if the gang's annotation says so of
// the exit code.
func (s *nodeSuspicion) rankFailed(pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Status.Phase != corev1.PodFailed || eviction.Disrupted(pod) || pod.DeletionTimestamp != nil {
		return
	}
	group, err := s.groups.PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return
	}
	// An annotation that is missing or cannot be read asks for nothing.
	codes, _ := topology.ParseExitCodes(group.Annotations[topology.AnnotationExitCodes])
	s.rankStruck(pod, group.UID, codes)
	if !asksForAnotherNode(pod, codes) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwanted[group.UID] == nil {
		s.unwanted[group.UID] = make(map[string]time.Time)
	}
	_, end := lifeOf(pod)
	s.unwanted[group.UID][pod.Spec.NodeName] = earlier(end, s.clock.Now()).Add(unwantedFor)
}

func asksForAnotherNode(pod *corev1.Pod, codes topology.ExitCodes) bool {
	return slices.ContainsFunc(ended(pod), func(e *corev1.ContainerStateTerminated) bool {
		return e.ExitCode != 0 && codes.Action(e.ExitCode) == topology.ExitOtherNode
	})
}

// barUnwanted adds the nodes that the gang is to stay off. Callers hold mu.
func (s *nodeSuspicion) barUnwanted(gang types.UID, barred map[string]string, now time.Time) map[string]string {
	for node, until := range s.unwanted[gang] {
		if now.After(until) {
			delete(s.unwanted[gang], node)
			continue
		}
		barred = bar(barred, node, ruleUnwanted)
	}
	return barred
}
