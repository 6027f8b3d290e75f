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

// ruleUnwanted is why a node is barred to a gang.
const ruleUnwanted = "an exit code of a rank there"

// unwantedFor is the time for which a node is barred to a gang after an exit code that asks for another node.
const unwantedFor = time.Hour

// rankFailed counts a failed rank against its node, and bars the node to its gang if the gang's annotation says so of the exit code.
func (p *GangPlacement) rankFailed(pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Status.Phase != corev1.PodFailed || eviction.Disrupted(pod) || pod.DeletionTimestamp != nil {
		return
	}
	group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return
	}
	// What is missing or cannot be read asks for nothing.
	codes, _ := topology.ParseExitCodes(group.Annotations[topology.AnnotationExitCodes])
	p.rankStruck(pod, group.UID, codes)
	if !asksForAnotherNode(pod, codes) {
		return
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if p.memory.unwanted[group.UID] == nil {
		p.memory.unwanted[group.UID] = make(map[string]time.Time)
	}
	p.memory.unwanted[group.UID][pod.Spec.NodeName] = p.clock.Now().Add(unwantedFor)
}

func asksForAnotherNode(pod *corev1.Pod, codes topology.ExitCodes) bool {
	return slices.ContainsFunc(ended(pod), func(e *corev1.ContainerStateTerminated) bool {
		return e.ExitCode != 0 && codes.Action(e.ExitCode) == topology.ExitOtherNode
	})
}

// barUnwanted adds the nodes that the gang is to stay off.
func (m *memory) barUnwanted(gang types.UID, barred map[string]string, now time.Time) map[string]string {
	for node, until := range m.unwanted[gang] {
		if now.After(until) {
			delete(m.unwanted[gang], node)
			continue
		}
		barred = bar(barred, node, ruleUnwanted)
	}
	return barred
}
