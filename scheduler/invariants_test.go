package scheduler_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// rebirth is the time that a Job controller needs to make a lost pod again.
const rebirth = 100 * time.Millisecond

// job holds the Job controller's and the checks' record of one gang. Every field is under the cluster's lock.
type job struct {
	group   *schedulingv1beta1.PodGroup
	members []*member // by rank
	// torn is since when some but fewer members than needed are bound, zero if that is not so.
	torn time.Time
	// stalls are the cluster's at that time.
	stalls time.Duration
	// whole is the time at which all members were bound for the first time.
	whole time.Time
	// pardoned gangs lose a member among their bindings: others may be bound after that.
	pardoned bool
	// ended gangs are being deleted by the test.
	ended    bool
	told     bool
	eventLog []string
}

type member struct {
	pod  *corev1.Pod // nil while there is none
	node string
	// made counts the pods of this rank; due is the time of the next one, zero for never.
	made int
	due  time.Time
}

// submit creates a gang's PodGroup and its pods, except the last of them.
func (w *fakeCluster) submit(t *testing.T, name string, size, without int) *job {
	t.Helper()
	group, pods := schedulertest.Gang(name, size, "clique")
	j := &job{group: group, members: make([]*member, size)}
	for rank := range j.members {
		j.members[rank] = &member{}
	}
	w.locked(func() { w.jobs[name] = j })
	w.Create(t, group, pods[:size-without])
	return j
}

// complete creates the last pod of a gang.
func (w *fakeCluster) complete(t *testing.T, j *job) {
	t.Helper()
	_, pods := schedulertest.Gang(j.group.Name, len(j.members), "")
	w.Create(t, pods[len(pods)-1])
}

// lose deletes the present pod of a rank.
func (w *fakeCluster) lose(t *testing.T, j *job, rank int) types.UID {
	t.Helper()
	var pod *corev1.Pod
	w.locked(func() { pod = j.members[rank].pod })
	if err := w.CoreV1().
		Pods(schedulertest.Namespace).
		Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err) // this may be called by a goroutine of the scheduler
	}
	return pod.UID
}

// finish deletes a gang that has run.
func (w *fakeCluster) finish(t *testing.T, j *job) {
	t.Helper()
	var pods []*corev1.Pod
	w.locked(func() {
		j.ended = true
		for _, m := range j.members {
			if m.pod != nil {
				pods = append(pods, m.pod)
			}
		}
	})
	w.DeletePods(t, pods)
	err := w.SchedulingV1beta1().
		PodGroups(schedulertest.Namespace).
		Delete(t.Context(), j.group.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// recreate is the Job controller: a deleted pod is created again, with another name and UID.
func (w *fakeCluster) recreate(t *testing.T) {
	t.Helper()
	var due []*corev1.Pod
	w.locked(func() {
		for _, j := range w.jobs {
			for rank, m := range j.members {
				if m.pod == nil && !m.due.IsZero() && time.Now().After(m.due) && !j.ended {
					_, pods := schedulertest.Gang(j.group.Name, len(j.members), "")
					pods[rank].Name += "-again" + strconv.Itoa(m.made)
					pods[rank].UID = types.UID(pods[rank].Name)
					due = append(due, pods[rank])
				}
			}
		}
	})
	w.Create(t, due)
}

// memberOf finds the gang and the rank of a pod, nil for a single one.
func (w *fakeCluster) memberOf(pod *corev1.Pod) (*job, *member) {
	if pod.Spec.SchedulingGroup == nil {
		return nil, nil
	}
	j := w.jobs[*pod.Spec.SchedulingGroup.PodGroupName]
	rank, err := strconv.Atoi(pod.Labels[schedulertest.RankLabel])
	if j == nil || err != nil {
		return nil, nil
	}
	return j, j.members[rank]
}

func (w *fakeCluster) recordMade(pod *corev1.Pod) {
	if j, m := w.memberOf(pod); j != nil {
		m.pod, m.node, m.due = pod, "", time.Time{}
		m.made++
		j.note("%s is made", pod.Name)
	}
}

func (w *fakeCluster) recordGone(name string) {
	for _, j := range w.jobs {
		for _, m := range j.members {
			if m.pod == nil || m.pod.Name != name {
				continue
			}
			if m.node != "" {
				w.used[m.node] -= gpusOf(m.pod)
			}
			m.pod, m.node, m.due = nil, "", time.Now().Add(rebirth)
			j.note("%s is gone", name)
			w.judge(j)
		}
	}
}

// checkBound checks all that can be wrong with one binding.
func (w *fakeCluster) checkBound(pod *corev1.Pod) *job {
	node := pod.Spec.NodeName
	w.used[node] += gpusOf(pod)
	object, err := w.Tracker().Get(nodeResource, "", node)
	if err != nil {
		w.fault("%s is bound to %s, which is gone", pod.Name, node)
	} else if has := object.(*corev1.Node).Status.Allocatable[schedulertest.GPU]; w.used[node] > has.Value() {
		w.fault("%d of the %d GPUs of %s are taken when %s is bound", w.used[node], has.Value(), node, pod.Name)
	}
	j, m := w.memberOf(pod)
	if j == nil {
		return nil
	}
	m.node = node
	j.note("%s is bound to %s", pod.Name, node)
	lost := slices.IndexFunc(j.members, func(m *member) bool { return m.pod == nil })
	if lost >= 0 && j.whole.IsZero() && !j.pardoned {
		w.fault("%s is bound although its gang has no rank %d", pod.Name, lost)
	}
	w.judge(j)
	return j
}

// vanish deletes a pod inside of another request.
func (w *fakeCluster) vanish(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := w.Tracker().Delete(podResource, pod.Namespace, pod.Name); err != nil {
		t.Error(err)
	}
	w.recordGone(pod.Name)
}

// judge looks at a gang after every change of it, and now and then.
func (w *fakeCluster) judge(j *job) {
	bound, need, now := j.bound(), int(j.group.Spec.SchedulingPolicy.Gang.MinCount), time.Now()
	if bound == len(j.members) && j.whole.IsZero() {
		j.whole = now
	}
	torn := bound > 0 && bound < need && !j.ended
	if torn && j.torn.IsZero() {
		j.torn, j.stalls = now, w.stalls
	}
	until := w.allowed(j.torn).Add(w.stalls + w.unseen(now) - j.stalls)
	if !j.torn.IsZero() && now.After(until) && !j.told {
		j.told = true
		w.fault("gang %s has been torn for %v, which is %v too long: %d of %d members are bound", j.group.Name,
			now.Sub(j.torn).Round(time.Millisecond), now.Sub(until).Round(time.Millisecond), bound, need)
	}
	if !torn {
		j.torn = time.Time{}
	}
}

// allowed returns the time for which a gang may stay torn: the moment that its bindings take, or the grace if the test
// did something.
func (w *fakeCluster) allowed(torn time.Time) time.Time {
	until := torn.Add(burst)
	if late := w.hit.Add(w.grace + burst); late.After(until) {
		return late
	}
	return until
}

// unseen returns the time since the last look if that is a stall: after one, a binding may precede the next look.
func (w *fakeCluster) unseen(now time.Time) time.Duration {
	if since := now.Sub(w.looked); !w.looked.IsZero() && since > stall {
		return since
	}
	return 0
}

func (w *fakeCluster) judgeAll() {
	now := time.Now()
	w.stalls += w.unseen(now)
	w.looked = now
	for _, j := range w.jobs {
		w.judge(j)
	}
}

func (j *job) bound() int {
	n := 0
	for _, m := range j.members {
		if m.node != "" {
			n++
		}
	}
	return n
}

// now returns the number of bound members, and the pods that a scheduler deleted so far.
func (w *fakeCluster) now(j *job) (bound int, evicted []string) {
	w.locked(func() { bound, evicted = j.bound(), slices.Clone(w.evicted) })
	return bound, evicted
}

// isWhole reports whether all members are bound now.
func (j *job) isWhole() bool { return j.bound() == len(j.members) }

// cliques are the cliques in which the members are.
func (j *job) cliques() []string {
	var cliques []string
	for _, m := range j.members {
		clique, _, _ := strings.Cut(m.node, "-")
		cliques = append(cliques, clique)
	}
	slices.Sort(cliques)
	return slices.Compact(cliques)
}

func (j *job) note(format string, args ...any) {
	j.eventLog = append(j.eventLog, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// eventLog returns the last events of each gang that is not whole.
func (w *fakeCluster) eventLog() string {
	var out []string
	w.locked(func() {
		if !w.hit.IsZero() {
			out = append(out, "the test did its last harm at "+w.hit.Format("05.000"))
		}
		for name, j := range w.jobs {
			if j.ended || j.isWhole() {
				continue
			}
			out = append(out, fmt.Sprintf("gang %s: %d of %d members are bound", name, j.bound(), len(j.members)))
			out = append(out, j.eventLog[max(0, len(j.eventLog)-30):]...)
		}
	})
	return strings.Join(out, "\n  ")
}

func gpusOf(pod *corev1.Pod) int64 {
	asked := pod.Spec.Containers[0].Resources.Requests[schedulertest.GPU]
	return asked.Value()
}
