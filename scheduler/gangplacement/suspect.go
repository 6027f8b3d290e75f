package gangplacement

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/incompletegangs"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// ruleSuspect is the rule that bars a node whose kubelet had less room than it reports.
const ruleSuspect = "a refusal by their kubelets"

// longestSuspicion is the time for which an unchanged node is barred: kubelets report changes within ten seconds, and
// other schedulers' pods are seen sooner.
const longestSuspicion = 30 * time.Second

// nodeSuspicion bars nodes for the failures and refusals of pods there: suspects to all gangs for a moment, nodes with
// too many strikes until these have lost their weight, and single nodes to one gang.
type nodeSuspicion struct {
	clock  clock.WithDelayedExecution
	groups fwk.PodGroupManager
	// changed reports to the queue that a node may be barred no more. It is called without mu.
	changed func()

	// mu guards the fields below: the handlers of pods, nodes and PodGroups add and forgive failures, and the
	// scheduling loop reads and settles them. They have one lock, because a suspicion that nothing explains becomes a
	// strike.
	mu sync.Mutex
	// suspects holds the nodes whose kubelets refused a pod.
	suspects map[string]suspect
	// strikes holds the strikes against nodes, and the trials of gangs.
	strikes *nodehealth.Ledger
	// unwanted maps the UID of a PodGroup to the nodes that its gang has to avoid, each until an instant.
	unwanted map[types.UID]map[string]time.Time
	// sent are the pods whose refusals count.
	sent sentPods
	// former are, by gang, the ranks that had failed before the scheduler's start, until they are judged: their
	// PodGroups may be heard of later.
	former map[types.NamespacedName][]*corev1.Pod
}

// suspect is a node whose kubelet refused a pod.
type suspect struct {
	// look is the node's state when it was first seen after the refusal, 0 before that.
	look uint64
	// until is the time at which the suspicion ends.
	until time.Time
	// namespace is that of the refused pod.
	namespace string
}

func newNodeSuspicion(
	clock clock.WithDelayedExecution, groups fwk.PodGroupManager, limits nodehealth.Limits, changed func(),
) *nodeSuspicion {
	return &nodeSuspicion{
		clock: clock, groups: groups, changed: changed, suspects: make(map[string]suspect),
		strikes: nodehealth.NewLedger(limits), unwanted: make(map[types.UID]map[string]time.Time),
		sent: newSentPods(), former: make(map[types.NamespacedName][]*corev1.Pod),
	}
}

// podChanged follows pods that end, in a scheduler whose informer has ended pods.
func (s *nodeSuspicion) podChanged(old, obj any) {
	before, ok := old.(*corev1.Pod)
	after, same := obj.(*corev1.Pod)
	if !ok || !same || snapshot.Ended(before) || !snapshot.Ended(after) {
		return
	}
	s.podEnded(after)
}

// podSent notes that the scheduler sends a pod to a node.
func (s *nodeSuspicion) podSent(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.add(pod.UID)
}

// podGone notes that a pod has ended or was deleted.
func (s *nodeSuspicion) podGone(obj any) {
	if pod, ok := snapshot.ObjectOf[*corev1.Pod](obj); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent.remove(pod.UID, s.clock.Now())
	}
}

// podEnded follows ranks that failed and pods that a kubelet refused. After a refusal, the known state of that node is
// wrong, or another scheduler's pod is on its way there, so no gang is sent there before the node or its pods change.
func (s *nodeSuspicion) podEnded(pod *corev1.Pod) {
	if gang, ok := snapshot.GroupOf(pod); ok {
		s.recall(gang) // failures count in their order
	}
	s.rankFailed(pod)
	if !incompletegangs.WasRefused(pod) || !s.wasSent(pod) {
		return
	}
	own, others := s.podRefused(pod, s.clock.Now())
	for _, left := range []time.Duration{longestSuspicion, own, others} {
		if left > 0 { // then waiting gangs may have the node
			s.clock.AfterFunc(left, s.changed)
		}
	}
}

// hadEnded remembers a rank that had failed before the scheduler's start.
func (s *nodeSuspicion) hadEnded(pod *corev1.Pod) {
	gang, ok := snapshot.GroupOf(pod)
	if !ok || pod.Status.Phase != corev1.PodFailed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.former[gang] = append(s.former[gang], pod)
}

// recallAll judges the ranks of all gangs that had failed before the scheduler's start.
func (s *nodeSuspicion) recallAll() {
	s.mu.Lock()
	gangs := slices.Collect(maps.Keys(s.former)) // in any order: one has no influence on another
	s.mu.Unlock()
	for _, gang := range gangs {
		s.recall(gang)
	}
}

// recall judges the ranks of a gang that had failed before the scheduler's start, in the order of their ends.
func (s *nodeSuspicion) recall(gang types.NamespacedName) {
	s.mu.Lock()
	former := s.former[gang]
	delete(s.former, gang)
	s.mu.Unlock()
	slices.SortFunc(former, func(a, b *corev1.Pod) int {
		_, endA := lifeOf(a)
		_, endB := lifeOf(b)
		return cmp.Or(endA.Compare(endB), cmp.Compare(a.UID, b.UID))
	})
	for _, pod := range former {
		s.rankFailed(pod)
	}
}

// wasSent reports whether the scheduler sent a pod to its node.
func (s *nodeSuspicion) wasSent(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.has(pod.UID)
}

// podRefused notes the refusal of a pod by its kubelet. It returns the times for which the node remains in quarantine
// for the gangs of the pod's namespace, and of others.
func (s *nodeSuspicion) podRefused(pod *corev1.Pod, now time.Time) (own, others time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := pod.Spec.NodeName
	s.suspects[node] = suspect{until: now.Add(longestSuspicion), namespace: pod.Namespace}
	if incompletegangs.LacksDevice(pod) {
		s.strikes.Refused(node, pod.Namespace, earlier(pod.CreationTimestamp.Time, now))
	}
	return s.strikes.Left(node, pod.Namespace, now), s.strikes.Left(node, "", now)
}

// nodeUpdated forgets the strikes against a node that an administrator has opened again.
func (s *nodeSuspicion) nodeUpdated(before, after *corev1.Node) {
	if before.Spec.Unschedulable && !after.Spec.Unschedulable {
		s.forgive(after.Name)
	}
}

// forgive forgets the strikes against a node.
func (s *nodeSuspicion) forgive(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strikes.Forgive(node)
}

// groupDeleted forgets the failures of a deleted PodGroup. The results of its trial stay.
func (s *nodeSuspicion) groupDeleted(group types.UID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unwanted, group)
	s.strikes.Forget(group, now)
}

// bar adds to the barred nodes, each with its rule, those that are barred to the gang for the failures and refusals of
// pods there.
func (s *nodeSuspicion) bar(barred map[string]string, q question, now time.Time) map[string]string {
	s.recallAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	barred = s.barStruck(s.barSuspects(barred, q.parent.Nodes, now), q)
	return s.barUnwanted(q.group.UID, barred, now)
}

// barSuspects adds the nodes that have not changed since they were first looked at after the refusal. A refusal that
// nothing has explained in all that time is a strike against the node. Callers hold mu.
func (s *nodeSuspicion) barSuspects(
	barred map[string]string, nodes []fwk.NodeInfo, now time.Time,
) map[string]string {
	if len(s.suspects) == 0 {
		return barred
	}
	for _, info := range nodes {
		name := info.Node().Name
		was, ok := s.suspects[name]
		if !ok {
			continue
		}
		is := look(info)
		switch changed := was.look != 0 && was.look != is; {
		case changed:
			delete(s.suspects, name)
		case !now.Before(was.until):
			delete(s.suspects, name)
			if was.look != 0 {
				s.strikes.Refused(name, was.namespace, now)
			}
		default:
			was.look = is
			s.suspects[name] = was
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
