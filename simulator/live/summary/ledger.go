package summary

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// A Ledger records the node of every job's ranks. It is safe for concurrent use.
type Ledger struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]map[memberIndex]*member
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{jobs: map[types.NamespacedName]map[memberIndex]*member{}}
}

// memberIndex identifies a member in its job. A pod hands it on to the pod that replaces it.
type memberIndex struct {
	replicatedJob   string
	jobIndex        string
	completionIndex string
	pod             string // only where the indexes are missing
}

// member is the last pod of an index.
type member struct {
	index   memberIndex
	pod     string
	uid     types.UID
	created time.Time
	former  []types.UID // whose late events mean nothing
	node    string
	bound   time.Time // of the index's first pod that was bound
	phase   corev1.PodPhase
	waiting string // why it is not scheduled
	group   string // the PodGroup that it belongs to, if any
	deleted bool
}

// Observe takes in the state of a pod, seen at some moment. Pods that belong to no JobSet, and states that are out of
// date, are ignored.
func (l *Ledger) Observe(pod *corev1.Pod, at time.Time) {
	jobSet, ours := pod.Labels[jobsetv1alpha2.JobSetNameKey]
	if !ours {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: jobSet}
	members, known := l.jobs[key]
	if !known {
		members = map[memberIndex]*member{}
		l.jobs[key] = members
	}
	where := memberIndexOf(pod)
	current, taken := members[where]
	if !taken {
		current = &member{index: where}
		members[where] = current
	}
	if current.admit(pod) {
		current.update(pod, at)
	}
}

// ObserveDeletion records the last state of a deleted pod. A job that has ended retains the places of its pods; one
// that has not has lost them, unless other pods take their indexes.
func (l *Ledger) ObserveDeletion(pod *corev1.Pod, at time.Time) {
	l.Observe(pod, at)
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[jobsetv1alpha2.JobSetNameKey]}
	if current, known := l.jobs[key][memberIndexOf(pod)]; known && current.uid == pod.UID {
		current.deleted = true
	}
}

func memberIndexOf(pod *corev1.Pod) memberIndex {
	where := memberIndex{
		replicatedJob: pod.Labels[jobsetv1alpha2.ReplicatedJobNameKey],
		jobIndex:      pod.Labels[jobsetv1alpha2.JobIndexKey],
		completionIndex: cmp.Or(
			pod.Labels[batchv1.JobCompletionIndexAnnotation],
			pod.Annotations[batchv1.JobCompletionIndexAnnotation],
		),
	}
	if where.completionIndex == "" {
		where.pod = pod.Name
	}
	return where
}

// admit reports whether pod is the member's pod, or takes over from it.
func (m *member) admit(pod *corev1.Pod) bool {
	switch {
	case pod.UID == m.uid && m.pod != "":
		return true
	case slices.Contains(m.former, pod.UID), pod.CreationTimestamp.Time.Before(m.created):
		return false
	case m.pod != "":
		m.former = append(m.former, m.uid)
	}
	m.pod, m.uid, m.created = pod.Name, pod.UID, pod.CreationTimestamp.Time
	m.group = gangapi.GroupOf(pod.ObjectMeta, pod.Spec)
	m.node, m.phase, m.waiting, m.deleted = "", "", "", false
	return true
}

func (m *member) update(pod *corev1.Pod, at time.Time) {
	if pod.Status.Phase != "" {
		m.phase = pod.Status.Phase
	}
	scheduled := corev1.PodCondition{}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			scheduled = condition
		}
	}
	if pod.Spec.NodeName == "" {
		m.waiting = scheduled.Message
		return
	}
	m.node, m.waiting = cmp.Or(m.node, pod.Spec.NodeName), ""
	switch {
	case !m.bound.IsZero():
	case scheduled.Status == corev1.ConditionTrue:
		m.bound = sharpen(scheduled.LastTransitionTime.Time, at)
	case pod.Status.StartTime != nil:
		m.bound = sharpen(pod.Status.StartTime.Time, at) // bound by a scheduler that sets no condition
	}
}

// sharpen corrects an instant of the API, which is cut to the second, by the moment at which it was seen.
func sharpen(second, seen time.Time) time.Time {
	if latest := second.Add(time.Second); seen.After(latest) {
		return latest
	}
	if seen.Before(second) {
		return second
	}
	return seen
}

// members returns copies of a job's members in the order of their ranks.
func (l *Ledger) members(job types.NamespacedName) []member {
	l.mu.Lock()
	defer l.mu.Unlock()
	ordered := make([]member, 0, len(l.jobs[job]))
	for where := range maps.Keys(l.jobs[job]) {
		ordered = append(ordered, *l.jobs[job][where])
	}
	slices.SortFunc(ordered, func(a, b member) int {
		return cmp.Or(
			cmp.Compare(a.index.replicatedJob, b.index.replicatedJob),
			compareIndexes(a.index.jobIndex, b.index.jobIndex),
			compareIndexes(a.index.completionIndex, b.index.completionIndex),
			cmp.Compare(a.pod, b.pod),
		)
	})
	return ordered
}

// withoutLost returns the members of a job that has not ended. A member that was deleted before it finished has no
// place.
func withoutLost(members []member) []member {
	for i := range members {
		if members[i].deleted && members[i].phase != corev1.PodSucceeded {
			members[i].node, members[i].phase = "", ""
		}
	}
	return members
}

// compareIndexes compares numbers as numbers, and anything else as text after them.
func compareIndexes(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return cmp.Compare(a, b)
}
