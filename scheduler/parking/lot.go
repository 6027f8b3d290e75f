// Package parking keeps gangs that do not fit out of the scheduling queue until something changes that could help.
//
// Kubernetes 1.37 retries a rejected PodGroup by a timer, whatever happens in the cluster: a gang that would fit now
// waits for its turn, and one that cannot fit is tried again and again. A parked gang costs nothing. When the cluster
// changes, of all gangs that ask the same question only the first in the queue's order is asked again: if it does not
// fit, neither does any other of them.
package parking

import (
	"slices"
	"sync"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	// gather is how long changes are gathered before gangs are woken: a job that ends frees many nodes one by one.
	gather = 50 * time.Millisecond
	// lag is when they are asked again if the scheduler's snapshot is known to be behind.
	lag = 150 * time.Millisecond
	// settle is when they are woken again: the scheduler's own handlers may have seen the last change after us.
	settle = time.Second
	// longest is how long a gang stays parked without being asked again, whatever we saw: less than the five minutes after
	// which the queue lets everything try.
	longest = 4 * time.Minute
)

// Lot is the parking lot of one scheduler.
type Lot struct {
	timing timing.Timing

	mu   sync.Mutex
	wake func(types.NamespacedName)
	used bool
	// changes counts what could help, changed is when the last such change was seen.
	changes uint64
	changed time.Time
	// The wakings under way: soon, once more later, and in between when the snapshot is behind.
	soon, later, lagging bool
	parked               map[types.NamespacedName]spot
	// asked is the last question of every gang that was parked and was not placed since.
	asked map[types.NamespacedName]string
}

// spot is one parked gang.
type spot struct {
	group    types.UID
	question string
	order    decision.Order
	since    time.Time
	// woken is set while the gang is on its way to be asked again. It keeps its place before the others with its question
	// until then, and is called once more if the call was lost: the queue ignores one for a gang that is being tried.
	woken bool
	// called is when it was woken last.
	called time.Time
	// back is set when the attempt that was refused is over: until then the gang is being tried.
	back bool
}

// NewLot makes an empty lot.
func NewLot(t timing.Timing) *Lot {
	return &Lot{timing: t, parked: make(map[types.NamespacedName]spot), asked: make(map[types.NamespacedName]string)}
}

// Wakes sets what brings a gang back into the queue.
func (l *Lot) Wakes(wake func(types.NamespacedName)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake = wake
}

// Changes is the number of changes so far. Who decides about a gang reads it first and hands it to Park.
func (l *Lot) Changes() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = true
	return l.changes
}

// Used reports whether anybody decided about a gang yet. A scheduler that stands by for another one has all its informers,
// but decides nothing.
func (l *Lot) Used() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// Park keeps a gang out that did not fit. If something changed since it was asked, it is asked again soon. Gangs with one
// question fit or do not fit alike.
func (l *Lot) Park(group *schedulingv1beta1.PodGroup, waitsSince time.Time, question string, seen uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	l.asked[key] = question
	now := l.timing.Clock.Now()
	stale := l.changes != seen
	l.parked[key] = spot{
		group: group.UID, question: question, order: orderOf(group, waitsSince),
		since: now, woken: stale, called: now,
	}
	if stale { // and not later, by the queue's timer: those behind it would be asked first
		l.remindSoon()
	}
	l.count()
	if now.Sub(l.changed) < settle { // the decision may have been made without it
		l.remindLater()
	}
}

// orderOf is the gang's place in the queue.
func orderOf(group *schedulingv1beta1.PodGroup, waitsSince time.Time) decision.Order {
	return decision.Order{
		Priority: ptr.Deref(group.Spec.Priority, 0), Since: waitsSince, Namespace: group.Namespace, Name: group.Name,
	}
}

// Overtakes reports whether a gang that is asked would be before one that is parked, while changes are being gathered: what became
// free is for those that wait, in their order. Without that, whoever comes in between takes it, and under a stream of such gangs
// those that are parked never start. One that was called and does not come holds nobody up.
func (l *Lot) Overtakes(group *schedulingv1beta1.PodGroup, waitsSince time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.soon {
		return false
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	own := orderOf(group, waitsSince)
	for other, s := range l.parked {
		if other != key && s.order.Compare(own) < 0 && (!s.woken || l.timing.Clock.Since(s.called) < settle) {
			return true
		}
	}
	return false
}

// Holds reports whether the gang is parked.
func (l *Lot) Holds(key types.NamespacedName, group types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.parked[key]
	return ok && s.group == group && !s.woken && l.timing.Clock.Since(s.since) < longest
}

// Keeps is Holds for a gang that comes to the queue. If it was called while it was still being tried the queue did not hear of it,
// and would leave it to its timer, while those that were called with it are asked next and take what became free for it: so they are
// all called again.
func (l *Lot) Keeps(key types.NamespacedName, group types.UID) bool {
	l.mu.Lock()
	if s, ok := l.parked[key]; ok && s.group == group && !s.back {
		s.back = true
		l.parked[key] = s
		if s.woken {
			l.remindSoon()
		}
	}
	l.mu.Unlock()
	return l.Holds(key, group)
}

// Call brings a gang back into the queue, parked or not.
func (l *Lot) Call(key types.NamespacedName) {
	l.mu.Lock()
	wake := l.wake
	l.mu.Unlock()
	l.Release(key)
	call(wake, []types.NamespacedName{key})
}

// Release lets a gang try again when it comes to the queue.
func (l *Lot) Release(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(key)
}

// drop takes a gang out.
func (l *Lot) drop(key types.NamespacedName) {
	delete(l.parked, key)
	l.count()
}

func (l *Lot) count() { metrics.Parked.Set(float64(len(l.parked))) }

// Placed says that a gang goes: the next one with its question may fit as well.
func (l *Lot) Placed(key types.NamespacedName) {
	l.mu.Lock()
	l.drop(key)
	question, ok := l.asked[key]
	delete(l.asked, key)
	var next []types.NamespacedName
	if ok {
		next = l.heads(func(s spot) bool { return s.question == question })
	}
	wake := l.wake
	l.mu.Unlock()
	call(wake, next)
}

// Forget drops a gang that is gone.
func (l *Lot) Forget(key types.NamespacedName, group types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.parked[key]; ok && s.group != group {
		return // another one of its name
	}
	l.drop(key)
	delete(l.asked, key)
}

// Change says that the cluster changed in a way that could help a gang.
func (l *Lot) Change() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	l.changed = l.timing.Clock.Now()
	if len(l.parked) == 0 {
		return
	}
	l.remindSoon()
	l.remindLater()
}

// Again has the first gangs asked once more a little later: the last one was refused for the sake of pods that left, and the
// scheduler's snapshot does not show it yet.
func (l *Lot) Again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remind(&l.lagging, lag)
}

func (l *Lot) remindSoon() { l.remind(&l.soon, gather) }

func (l *Lot) remindLater() { l.remind(&l.later, settle) }

// remind wakes the first gangs after a while, unless that is under way.
func (l *Lot) remind(due *bool, after time.Duration) {
	if !*due {
		*due = true
		l.timing.AfterFunc(after, func() { l.wakeHeads(due) })
	}
}

func (l *Lot) wakeHeads(due *bool) {
	l.mu.Lock()
	*due = false
	heads := l.heads(func(spot) bool { return true })
	wake := l.wake
	l.mu.Unlock()
	call(wake, heads)
}

// heads lets the first gang of every question go, of those that are meant. They are in the queue's order.
func (l *Lot) heads(meant func(spot) bool) []types.NamespacedName {
	first := make(map[string]types.NamespacedName)
	for key, s := range l.parked {
		if !meant(s) {
			continue
		}
		if other, ok := first[s.question]; !ok || s.order.Compare(l.parked[other].order) < 0 {
			first[s.question] = key
		}
	}
	heads := make([]types.NamespacedName, 0, len(first))
	for _, key := range first {
		heads = append(heads, key)
		s := l.parked[key]
		if !s.woken {
			s.woken, s.called = true, l.timing.Clock.Now()
		}
		l.parked[key] = s
	}
	slices.SortFunc(heads, func(a, b types.NamespacedName) int { return l.parked[a].order.Compare(l.parked[b].order) })
	return heads
}

// call wakes gangs, outside the lot's lock, in the queue's order: the scheduler takes whoever is there when it has nothing to do, so
// if a later one came to the queue first, it would be asked first, and could take what became free for the others.
func call(wake func(types.NamespacedName), keys []types.NamespacedName) {
	if wake == nil {
		return
	}
	for _, key := range keys {
		wake(key)
	}
}
