package gangplacement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// ruleUnwanted is why a node is barred to a gang.
const ruleUnwanted = "a rank of it failed there"

// unwantedFor is the time for which a node is barred to a gang after an exit code that asks for another node.
const unwantedFor = time.Hour

// rankFailed bars the node of a failed rank to its gang if the gang's annotation says so of the exit code.
func (p *GangPlacement) rankFailed(pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Status.Phase != corev1.PodFailed || eviction.Disrupted(pod) || pod.DeletionTimestamp != nil {
		return
	}
	group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return
	}
	codes, err := topology.ParseExitCodes(group.Annotations[topology.AnnotationExitCodes])
	if err != nil || !asksForAnotherNode(pod, codes) {
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
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			ended := status.State.Terminated
			if ended != nil && ended.ExitCode != 0 && codes.Action(ended.ExitCode) == topology.ExitOtherNode {
				return true
			}
		}
	}
	return false
}

// barUnwanted adds the nodes that the gang is to stay off.
func (m *memory) barUnwanted(gang types.UID, barred map[string]string, now time.Time) map[string]string {
	for node, until := range m.unwanted[gang] {
		if now.After(until) {
			delete(m.unwanted[gang], node)
			continue
		}
		if barred == nil {
			barred = make(map[string]string, len(m.unwanted[gang]))
		}
		barred[node] = ruleUnwanted
	}
	return barred
}
