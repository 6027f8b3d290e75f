// Package explanation reports to users why a gang waits, and where it is: as conditions of Lockstep's own on the
// PodGroup and as an Event on the object that owns it. The scheduler's framework would write the same text into every
// member instead, at every attempt. Of a TrainJob's gangs, the TrainJob's controller writes the Events.
package explanation

import (
	"context"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// Condition is the type of the condition: True while the gang waits for the reason in the message.
const Condition = standing.Waiting

// The reasons of the condition.
const (
	// NoRoom says that the gang does not fit now.
	NoRoom = "NoRoom"
	// WrongRequest says that the gang asks for something that no fleet like this can give, or that cannot be read.
	WrongRequest = "WrongRequest"
	// Refused says that the gang has room, but that its nodes were refused by the scheduler's filters: for a volume, a
	// port, a rule between pods.
	Refused = "Refused"
	// SweepTurn says that as many gangs of its sweep run, or have their turn before it, as may run at a time.
	SweepTurn = "SweepTurn"
	// Incomplete says that members that the gang needs do not exist.
	Incomplete = "MembersMissing"
	// Placed says that the gang does not wait any more.
	Placed = "Placed"
)

const (
	// pause is the shortest time between two writes about one gang.
	pause = time.Minute
	// retry is after which time a write that failed is repeated, unless there is something newer to say.
	retry = 5 * time.Second
)

// Writer writes explanations, each gang's at most once a minute and only if a number in it changed its order of
// magnitude or the words changed. It never blocks its caller.
type Writer struct {
	client   kubernetes.Interface
	recorder events.EventRecorder
	timing   timing.Timing

	mu    sync.Mutex
	gangs map[types.UID]*told
	// queue waits to be written, and is while writing is set.
	queue   []note
	writing bool
	// drain writes all that waits, until the context ends.
	drain func()
}

// told is the known state of one gang.
type told struct {
	class string
	// goes says that the gang does not wait.
	goes bool
	// lacks says that members were missing, which is over when the gang is queued.
	lacks bool
	at    time.Time
	// placedAgain is the disruption after which the gang was placed again, by the instant of the group's condition. The
	// cache shows that condition until it has seen ours, and each member of the gang is reported in the meantime.
	placedAgain metav1.Time
	// until is the first instant that was named; zero if none was. Once it has passed, the same words with another
	// instant are news.
	until time.Time
	// next is the note that arrived too early to be written.
	next *note
}

// note is one explanation.
type note struct {
	group           *schedulingv1beta1.PodGroup
	status          metav1.ConditionStatus
	reason, message string
	// turn is the position of a waiting gang in the queue.
	turn standing.Turn
	// place is the place of a gang that does not wait; nil if that is not known.
	place *standing.Place
}

// class returns the part of a note that makes a second one with the same no news.
func (n note) class() string {
	class := string(n.status) + n.reason + classOf(n.message)
	switch {
	case n.place != nil:
		return class + n.place.String()
	case n.status == metav1.ConditionTrue && n.turn.Reserved != "":
		return class + n.turn.String()
	}
	return class + classOf(n.turn.String())
}

// until returns the first instant that the note names, zero if it names none.
func (n note) until() time.Time {
	var first time.Time
	for _, text := range []string{standing.InstantIn(n.message), n.turn.Start} {
		at, err := time.Parse(time.RFC3339, text)
		if err == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// NotAsked is the message of a gang that was not evaluated yet: its reason is NoRoom, and it is unknown whether there
// is room.
const NotAsked = "others are before it, and are asked first"

// backlog is the number of explanations that may wait to be written. If there are more, the API server is the
// bottleneck, and the others are written a minute later: a gang that is parked may have no other attempt for long.
const backlog = 1024

// NewWriter makes a writer that works until the context ends.
func NewWriter(
	ctx context.Context, client kubernetes.Interface, recorder events.EventRecorder, t timing.Timing,
) *Writer {
	w := &Writer{client: client, recorder: recorder, timing: t, gangs: make(map[types.UID]*told)}
	w.drain = func() {
		for ctx.Err() == nil {
			n, ok := w.next()
			if !ok {
				return
			}
			w.write(ctx, n)
		}
	}
	return w
}

// next takes the next explanation that waits to be written; a goroutine writes until it reports that there is none.
func (w *Writer) next() (note, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.queue, w.writing = nil, false
		return note{}, false
	}
	n := w.queue[0]
	w.queue = w.queue[1:]
	return n, true
}

// Waits says why the gang waits, and where it stands in the queue.
func (w *Writer) Waits(group *schedulingv1beta1.PodGroup, reason, message string, turn standing.Turn) {
	w.tell(note{group: group, status: metav1.ConditionTrue, reason: reason, message: message, turn: turn})
}

// Queued reports that others are evaluated before the gang, unless more has been reported about it. It is no answer:
// the first answer is written at once.
func (w *Writer) Queued(group *schedulingv1beta1.PodGroup, turn standing.Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.gangs[group.UID]; t != nil && !t.goes && !t.lacks {
		return
	}
	t := &told{}
	w.gangs[group.UID] = t
	w.send(t, note{
		group: group, status: metav1.ConditionTrue, reason: NoRoom,
		message: NotAsked, turn: turn,
	}, "")
	t.at = time.Time{}
}

// Placed reports that the gang was placed, and where; nil if that is not known. For a gang that never waited and that
// nothing owns nothing is written: that would be one more write for each, without a reader.
func (w *Writer) Placed(group *schedulingv1beta1.PodGroup, place *standing.Place) {
	w.mu.Lock()
	t := w.gangs[group.UID]
	// Without a record the group itself shows whether it waits: a scheduler before this one wrote that.
	waited := t != nil && !t.goes || t.outdates(group) ||
		t == nil && meta.IsStatusConditionTrue(group.Status.Conditions, Condition)
	w.mu.Unlock()
	if waited || place != nil && metav1.GetControllerOf(group) != nil {
		w.tell(note{
			group:   group,
			status:  metav1.ConditionFalse,
			reason:  Placed,
			message: "the gang has its nodes",
			place:   place,
		})
	}
}

// disruption is the condition that says that the gang was evicted, and not placed since; nil without one.
func disruption(group *schedulingv1beta1.PodGroup) *metav1.Condition {
	condition := meta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.DisruptionTarget)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// outdates reports whether the gang has been evicted since the last note that it has its nodes. t is nil for an unknown
// gang.
func (t *told) outdates(group *schedulingv1beta1.PodGroup) bool {
	evicted := disruption(group)
	return evicted != nil && (t == nil || !t.placedAgain.Equal(&evicted.LastTransitionTime))
}

// Forget drops the state of a gang.
func (w *Writer) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.gangs, uid)
}

func (w *Writer) tell(n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.gangs[n.group.UID]
	if t == nil {
		t = &told{}
		w.gangs[n.group.UID] = t
	}
	class := n.class()
	goes := n.status == metav1.ConditionFalse
	overdue := !t.until.IsZero() && t.until.Before(w.timing.Clock.Now())
	if class == t.class && (!goes || !t.outdates(n.group)) && !overdue {
		t.next = nil
		return
	}
	// Members are missing, or are there again: that is looked at twice a minute at most, and is not put off.
	turns := t.lacks != (n.reason == Incomplete)
	if wait := t.at.Add(pause).Sub(w.timing.Clock.Now()); wait > 0 && !goes && !t.goes && !turns {
		w.keep(t, n, wait)
		return
	}
	w.send(t, n, class)
}

// keep holds the gang's last explanation until it may be written.
func (w *Writer) keep(t *told, n note, wait time.Duration) {
	if t.next == nil {
		w.timing.AfterFunc(wait, func() { w.late(n.group.UID) })
	}
	t.next = &n
}

// late writes a note that arrived too early.
func (w *Writer) late(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.gangs[uid]; t != nil && t.next != nil {
		n := *t.next
		t.next = nil
		w.send(t, n, n.class())
	}
}

func (w *Writer) send(t *told, n note, class string) {
	if len(w.queue) >= backlog {
		w.keep(t, n, pause)
		return
	}
	w.queue = append(w.queue, n)
	t.class, t.at, t.next, t.goes = class, w.timing.Clock.Now(), nil, n.status == metav1.ConditionFalse
	t.until, t.lacks = n.until(), n.reason == Incomplete
	if evicted := disruption(n.group); t.goes && evicted != nil {
		t.placedAgain = evicted.LastTransitionTime
	}
	if !w.writing {
		w.writing = true
		w.timing.Beside(w.drain)
	}
}

// classOf replaces the numbers of a text by their orders of magnitude: the rest of it matters, and whether 3 or 300
// nodes are full, but not whether 300 or 301 are.
func classOf(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		if end == i {
			b.WriteByte(text[i])
			i++
			continue
		}
		n, _ := strconv.ParseUint(text[i:end], 10, 64)
		b.WriteString("#" + strconv.Itoa(bits.Len64(n)))
		i = end
	}
	return b.String()
}

// conditions returns the conditions of a note. A gang that has its nodes is not said to be evicted any more.
func (n note) conditions(now metav1.Time) []any {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) any {
		return metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: n.group.Generation, LastTransitionTime: now,
		}
	}
	out := []any{condition(Condition, n.status, n.reason, n.message)}
	if n.reason == Incomplete { // it is in no queue
		return append(out,
			condition(standing.Queued, metav1.ConditionFalse, n.reason, n.message),
			condition(standing.Placed, metav1.ConditionFalse, n.reason, n.message))
	}
	if n.status == metav1.ConditionTrue {
		return append(out,
			condition(standing.Queued, metav1.ConditionTrue, n.reason, n.turn.String()),
			condition(standing.Placed, metav1.ConditionFalse, n.reason, "the gang waits"))
	}
	out = append(out, condition(standing.Queued, metav1.ConditionFalse, Placed, "the gang does not wait"))
	if n.place != nil {
		out = append(out, condition(standing.Placed, metav1.ConditionTrue, Placed, n.place.String()))
	}
	if disruption(n.group) != nil {
		out = append(out, map[string]any{"$patch": "delete", "type": schedulingv1beta1.DisruptionTarget})
	}
	return out
}

// write patches the conditions and, if the gang waits, records an Event on its owner.
func (w *Writer) write(ctx context.Context, n note) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": n.conditions(metav1.NewTime(w.timing.Clock.Now())),
	}})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Encoding a gang's explanation", "podGroup", klog.KObj(n.group))
		return
	}
	_, err = w.client.SchedulingV1beta1().PodGroups(n.group.Namespace).Patch(
		ctx, n.group.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Explaining why a gang waits", "podGroup", klog.KObj(n.group))
		w.failed(n)
		return
	}
	owner := metav1.GetControllerOf(n.group)
	if owner == nil || n.status != metav1.ConditionTrue || tellsItself(owner) {
		return
	}
	about := &corev1.ObjectReference{
		APIVersion: owner.APIVersion,
		Kind:       owner.Kind,
		Namespace:  n.group.Namespace,
		Name:       owner.Name,
		UID:        owner.UID,
	}
	w.recorder.Eventf(about, n.group, corev1.EventTypeWarning, n.reason, "Scheduling", "%s", n.message)
}

// failed has a note written again, unless a newer one has been sent since or is to be.
func (w *Writer) failed(n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.gangs[n.group.UID]
	if t == nil || t.class != "" && t.class != n.class() {
		return
	}
	t.class = "" // whatever is to be said is news
	if t.next == nil {
		w.keep(t, n, retry)
	}
}

// tellsItself reports whether the owner's controller writes Events about its gangs.
func tellsItself(owner *metav1.OwnerReference) bool {
	return owner.Kind == "TrainJob" && strings.HasPrefix(owner.APIVersion, "trainer.kubeflow.org/")
}
