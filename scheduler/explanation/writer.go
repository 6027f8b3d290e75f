// Package explanation tells people why a gang waits: as a condition of Lockstep's own on the PodGroup and as an Event on
// the object that owns it. The scheduler's framework would write the same text into every member instead, at every
// attempt.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Condition is the type of the condition: True while the gang waits because of what the message says.
const Condition = "lockstep.dev/Waiting"

// The reasons of the condition.
const (
	// NoRoom says that the gang does not fit now.
	NoRoom = "NoRoom"
	// WrongRequest says that the gang asks for something that no fleet like this can give, or that cannot be read.
	WrongRequest = "WrongRequest"
	// Refused says that the gang has room, but that its nodes were refused by the scheduler's filters: for a volume, a port, a
	// rule between pods.
	Refused = "Refused"
	// Placed says that the gang does not wait any more.
	Placed = "Placed"
)

// pause is the shortest time between two writes about one gang.
const pause = time.Minute

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

// told is what is known about one gang.
type told struct {
	class string
	at    time.Time
	// next is what came too early to be written.
	next *note
}

// note is one explanation.
type note struct {
	group           *schedulingv1beta1.PodGroup
	status          metav1.ConditionStatus
	reason, message string
}

// backlog is how many explanations may wait to be written. If there are more, the API server is the bottleneck, and the
// others come a minute later: a gang that is parked may have no other attempt for long.
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

// next takes the next explanation that waits to be written; there is somebody who writes until it says that there is none.
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

// Waits says why the gang waits.
func (w *Writer) Waits(group *schedulingv1beta1.PodGroup, reason, message string) {
	w.tell(note{group, metav1.ConditionTrue, reason, message})
}

// Queued says that others are asked before the gang, unless more than that was said about it. It is no answer: the first one that
// comes is written at once.
func (w *Writer) Queued(group *schedulingv1beta1.PodGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gangs[group.UID] != nil {
		return
	}
	t := &told{}
	w.gangs[group.UID] = t
	w.send(t, note{group, metav1.ConditionTrue, NoRoom, "others are before it, and are asked first"}, "")
	t.at = time.Time{}
}

// Goes says that the gang was placed. Nothing is written about a gang that never waited.
func (w *Writer) Goes(group *schedulingv1beta1.PodGroup) {
	w.mu.Lock()
	_, waited := w.gangs[group.UID]
	w.mu.Unlock()
	if waited {
		w.tell(note{group, metav1.ConditionFalse, Placed, "the gang has its nodes"})
	}
}

// Forget drops what is known about a gang.
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
	class := string(n.status) + n.reason + classOf(n.message)
	if class == t.class {
		t.next = nil
		return
	}
	if wait := t.at.Add(pause).Sub(w.timing.Clock.Now()); wait > 0 && n.status == metav1.ConditionTrue {
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

// late writes what came too early.
func (w *Writer) late(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.gangs[uid]; t != nil && t.next != nil {
		n := *t.next
		t.next = nil
		w.send(t, n, string(n.status)+n.reason+classOf(n.message))
	}
}

func (w *Writer) send(t *told, n note, class string) {
	if len(w.queue) >= backlog {
		w.keep(t, n, pause)
		return
	}
	w.queue = append(w.queue, n)
	t.class, t.at, t.next = class, w.timing.Clock.Now(), nil
	if !w.writing {
		w.writing = true
		w.timing.Beside(w.drain)
	}
}

// classOf replaces the numbers of a text by their orders of magnitude: what else is in it matters, and whether 3 or 300
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

// write patches the condition and, if the gang waits, records an Event on its owner.
func (w *Writer) write(ctx context.Context, n note) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{
		Type: Condition, Status: n.status, Reason: n.reason, Message: n.message,
		ObservedGeneration: n.group.Generation, LastTransitionTime: metav1.NewTime(w.timing.Clock.Now()),
	}}}})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Encoding a gang's explanation", "podGroup", klog.KObj(n.group))
		return
	}
	_, err = w.client.SchedulingV1beta1().PodGroups(n.group.Namespace).Patch(
		ctx, n.group.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Explaining why a gang waits", "podGroup", klog.KObj(n.group))
	}
	if owner := metav1.GetControllerOf(n.group); owner != nil && n.status == metav1.ConditionTrue {
		about := &corev1.ObjectReference{
			APIVersion: owner.APIVersion,
			Kind:       owner.Kind,
			Namespace:  n.group.Namespace,
			Name:       owner.Name,
			UID:        owner.UID,
		}
		w.recorder.Eventf(about, n.group, corev1.EventTypeWarning, n.reason, "Scheduling", "%s", n.message)
	}
}
