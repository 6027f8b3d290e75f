package gangplacement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/incompletegangs"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// ruleSuspect is why a node is barred whose kubelet had less room than it says.
const ruleSuspect = "a refusal by their kubelets"

// longestSuspicion is how long a node is barred that does not change: kubelets tell within ten seconds what has changed, and other schedulers' pods are
// seen sooner.
const longestSuspicion = 30 * time.Second

// suspicion is about one node: what it was like when we first looked after the refusal, 0 before that.
type suspicion struct {
	look  uint64
	until time.Time
}

// podChanged follows pods that end, in a scheduler whose informer has ended pods.
func (p *GangPlacement) podChanged(old, obj any) {
	before, ok := old.(*corev1.Pod)
	after, same := obj.(*corev1.Pod)
	if !ok || !same || snapshot.Ended(before) || !snapshot.Ended(after) {
		return
	}
	p.podEnded(after)
}

// podEnded follows ranks that failed and pods that a kubelet refused. After a refusal, what is known of that node is wrong, or another scheduler's pod
// is on its way there, so no gang is sent there before the node or its pods change.
func (p *GangPlacement) podEnded(pod *corev1.Pod) {
	p.rankFailed(pod)
	if !incompletegangs.WasRefused(pod) {
		return
	}
	now := p.clock.Now()
	p.memory.suspect(pod, now)
	for _, left := range []time.Duration{longestSuspicion, p.memory.leftOf(pod.Spec.NodeName, now)} {
		if left > 0 { // then whoever waits may have the node
			p.clock.AfterFunc(left, p.queue.Changed)
		}
	}
}

// suspect notes a refusal.
func (m *memory) suspect(pod *corev1.Pod, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspects[pod.Spec.NodeName] = suspicion{until: now.Add(longestSuspicion)}
	if incompletegangs.LacksDevice(pod) {
		m.strikes.Refused(pod.Spec.NodeName, earlier(pod.CreationTimestamp.Time, now))
	}
}

// leftOf is how long the node is in quarantine for all gangs.
func (m *memory) leftOf(node string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strikes.Left(node, "", now)
}

// barSuspects adds the nodes that are still as they were when they were first looked at after the refusal. A refusal that nothing has explained in all
// that time is a strike against the node.
func (m *memory) barSuspects(
	barred map[string]string, nodes []fwk.NodeInfo, now time.Time,
) map[string]string {
	if len(m.suspects) == 0 {
		return barred
	}
	for _, info := range nodes {
		name := info.Node().Name
		was, ok := m.suspects[name]
		if !ok {
			continue
		}
		is := look(info)
		switch changed := was.look != 0 && was.look != is; {
		case changed:
			delete(m.suspects, name)
		case !now.Before(was.until):
			delete(m.suspects, name)
			if was.look != 0 {
				m.strikes.Refused(name, now)
			}
		default:
			m.suspects[name] = suspicion{is, was.until}
			barred = bar(barred, name, ruleSuspect)
		}
	}
	return barred
}

// bar adds a node to those that are barred.
func bar(barred map[string]string, node, rule string) map[string]string {
	if barred == nil {
		barred = make(map[string]string)
	}
	barred[node] = rule
	return barred
}
