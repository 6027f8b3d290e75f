package waiting

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Question is one evaluation: a gang or a single pod, and the present fleet.
type Question struct {
	// Group is nil for a pod that is in no gang.
	Group *schedulingv1beta1.PodGroup
	// Waiting are the members without nodes, at least one. Running are those with nodes.
	Waiting, Running []*corev1.Pod
	View             snapshot.View
	// Choices hold the gang, and the ledger with the devices that it claims. Of several, any may be answered.
	Choices []devices.Asked
	// Accelerators is the number that the waiting members request, Kinds the resources that count as such.
	Accelerators int64
	Kinds        []corev1.ResourceName
	// Labels are the keys of node labels on which the devices that it claims depend.
	Labels []string
	// Protected says that an administrator marked the PriorityClass of a member as not to be preempted.
	Protected bool
	// Lags says that nodes are otherwise than the view shows them.
	Lags bool
	// Fleet reads the running units. It is called with the queue's lock held.
	Fleet func() Fleet
}

// Fleet holds the running units of a view.
type Fleet struct {
	// Units are those of the view, with the devices that they would give back to the question.
	Units *contention.Units
	// Budgets are the evictions that each disruption budget still allows, by the numbers in Units.
	Budgets []int
}

// IDOf returns the ID of a gang, and of the unit that it becomes.
func IDOf(gang types.NamespacedName) contention.ID { return contention.ID(gang.String()) }

// IDOfPod returns the ID of a pod that is in no gang.
func IDOfPod(pod *corev1.Pod) contention.ID {
	return IDOfSingle(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}

// IDOfSingle returns the ID of a pod of this name that is in no gang.
func IDOfSingle(pod types.NamespacedName) contention.ID { return contention.ID(pod.String() + "/") }

// NameOf returns the namespace and name of an entity, and whether it is a single pod. Of a part of an elastic gang, it
// is the gang.
func NameOf(id contention.ID) (name types.NamespacedName, single bool) {
	namespace, rest, _ := strings.Cut(string(id), "/")
	name.Namespace = namespace
	if name.Name, single = strings.CutSuffix(rest, "/"); !single {
		name.Name, _, _ = strings.Cut(rest, "/")
	}
	return name, single
}

// id is that of the question's entity.
func (x *Question) id() contention.ID {
	if x.Group == nil {
		return IDOfPod(x.Waiting[0])
	}
	return idOf(x.Group, nil)
}

// idOf returns the ID of a gang, or of a pod that is in none.
func idOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.ID {
	if group == nil {
		return IDOfPod(pod)
	}
	return IDOf(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
}

// Needed returns the number of waiting members that have to start together; zero or less if enough of them run.
func (x *Question) Needed() int {
	if x.Group == nil {
		return 1
	}
	return int(x.Group.Spec.SchedulingPolicy.Gang.MinCount) - len(x.Running)
}

// entity returns the question as the machine takes it.
func (q *Queue) entity(x *Question, now time.Time) contention.Entity {
	gang, pod := x.Choices[0].Gang, x.first()
	e := contention.Entity{
		ID: x.id(), Order: orderOf(x.Group, pod), Discipline: q.discipline(pod), Question: q.question(x, gang),
		Ask:           contention.Ask{Gang: gang, Needed: max(1, x.Needed()), End: topology.EndUnknown},
		Preemptible:   !x.Protected,
		NeverPreempts: x.leavesPreemption() || ptr.Deref(pod.Spec.PreemptionPolicy, "") == corev1.PreemptNever,
		Accelerators:  x.Accelerators,
		Sweep:         snapshot.SweepOf(x.Group),
	}
	e.Order.Replacement = len(x.Running) > 0 && x.Needed() > 0
	e.Order.Grows = len(x.Running) > 0 && x.Needed() <= 0 && snapshot.IsElastic(x.Group)
	e.RunTime = cmp.Or(declared(x.Group, pod, now), q.predicted(x, now))
	e.Elastic, e.Work = len(x.Running) == 0 && snapshot.IsElastic(x.Group), e.RunTime
	if e.RunTime > 0 {
		e.Ask.End = now.Unix() + e.RunTime
	}
	for _, pod := range x.Waiting {
		e.Grace = max(e.Grace, snapshot.GraceOf(pod))
	}
	return e
}

// first is a member that speaks for all.
func (x *Question) first() *corev1.Pod {
	if len(x.Waiting) > 0 {
		return x.Waiting[0]
	}
	return x.Running[0]
}

// leavesPreemption reports whether in-tree preemption makes room for the question: for pods in no gang that request no
// accelerators, for which the machine reserves no place either.
func (x *Question) leavesPreemption() bool { return x.Group == nil && x.Accelerators == 0 }

// orderOf returns the order of a gang, or of a pod that is in none, without when it is due.
func orderOf(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) contention.Order {
	if group != nil {
		return snapshot.OrderOf(group, ptr.Deref(group.Spec.Priority, 0))
	}
	return snapshot.OrderOf(pod, corev1helpers.PodPriority(pod))
}

// declared returns the longest run time in seconds that the entity declares if it starts now, 0 for none: the time
// until the expected end of a gang, the deadline of a single pod. An end that has passed counts as none.
func declared(group *schedulingv1beta1.PodGroup, pod *corev1.Pod, now time.Time) int64 {
	if group == nil {
		return ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0)
	}
	if end := snapshot.ExpectedEnd(group); end.After(now) {
		return end.Unix() - now.Unix()
	}
	return 0
}

// question sums up the request of a gang, one that is a part of the question's included.
func (q *Queue) question(x *Question, gang topology.Gang) string {
	return q.atlas.demands.question(x.Choices[0], q.lasting(x.View.Tree, gang))
}

// lasting returns the gang with the bars that last: a node that is away is away for all. With its bar in the sum, those
// that are evaluated before it leaves and those that are evaluated later would stand in classes of their own, though
// they ask the same. Of such a node, it counts which gang may use it nevertheless.
func (q *Queue) lasting(tree *topology.Tree, gang topology.Gang) topology.Gang {
	if len(q.missing) == 0 {
		return gang
	}
	gang.Shapes = slices.Clone(gang.Shapes)
	for i, shape := range gang.Shapes {
		barred := make([]string, tree.Len())
		copy(barred, shape.Barred)
		for name := range q.missing {
			node, ok := tree.Index(name)
			switch {
			case !ok:
			case barred[node] == "":
				barred[node] = "usable while it is away"
			default:
				barred[node] = ""
			}
		}
		if len(slices.Compact(slices.Clone(barred))) == 1 && barred[0] == "" {
			barred = nil // as of a gang that no rule bars
		}
		gang.Shapes[i].Barred = barred
	}
	return gang
}

// coordinates name a numbering of nodes and a list of columns. Questions about devices have columns of their own.
type coordinates struct {
	tree    *topology.Tree
	columns int
	devices *Question
}

func (x *Question) coordinates() coordinates {
	c := coordinates{tree: x.View.Tree, columns: len(x.View.Resources())}
	if x.claims() {
		c.devices = x
	}
	return c
}

// claims reports whether columns stand for devices.
func (x *Question) claims() bool { return len(x.Choices[0].Demands()) > 0 }

// snapshot returns the values that one evaluation reads, except for the places of leases.
func (x *Question) snapshot(fleet Fleet, now time.Time) contention.Snapshot {
	snap := contention.Snapshot{
		Now:         now.Unix(),
		Ledger:      x.Choices[0].Ledger,
		Running:     fleet.Units,
		Budgets:     fleet.Budgets,
		Coordinates: x.coordinates(),
	}
	if len(x.Choices) > 1 {
		snap.Placer = choices{x.Choices}
	}
	for i, name := range x.View.Resources() {
		if slices.Contains(x.Kinds, name) {
			snap.Accelerators = append(snap.Accelerators, i)
		}
	}
	for _, total := range x.View.Total {
		for _, i := range snap.Accelerators {
			if i < len(total) {
				snap.Fleet += total[i]
			}
		}
	}
	return snap
}

// choices is the Placer of a question with several answers: devices that all members share are in one place or another.
type choices struct{ all []devices.Asked }

// mostTried is the largest number of choices with room enough that are tried in one evaluation: of a gang that no one
// node may hold, each node with devices of its own is one.
const mostTried = 128

// Place places the gang with the first choice that holds it.
func (c choices) Place(l topology.Ledger, ask contention.Ask) contention.Answer {
	first := contention.Place(l, ask)
	tried := 1
	for _, other := range c.all[1:] {
		if first.Refusal == nil || tried == mostTried {
			break
		}
		if !other.Holds(l.Free, int64(max(ask.Needed, 1))) {
			continue
		}
		tried++
		there := ask
		there.Gang = other.Choose(ask.Gang)
		if answer := contention.Place(l, there); answer.Refusal == nil {
			return answer
		}
	}
	return first
}

// Reserve finds the earliest place of the first choice that has one.
func (c choices) Reserve(
	l topology.Ledger, ask contention.Ask, running []topology.Running,
) (topology.Reservation, bool) {
	tried := 0
	for i, choice := range c.all {
		there := ask
		if i > 0 { // the gang of the first is chosen already
			if l.Total != nil && !choice.Holds(l.Total, int64(max(ask.Needed, 1))) {
				continue
			}
			there.Gang = choice.Choose(ask.Gang)
		}
		if tried++; tried > mostTried {
			break
		}
		if r, fits, err := topology.Earliest(l, there.Fewest(), running); fits && err == nil {
			return r, true
		}
	}
	return topology.Reservation{}, false
}

// demands numbers the device demands that were ever asked, so that equal ones can be named in a question.
type demands struct{ known []*dra.Demand }

// mostDemands is the largest number of known demands: more arise from claims that differ each time.
const mostDemands = 1024

// question sums up the request of a gang. Questions with the same sum are answered alike.
func (d *demands) question(asked devices.Asked, gang topology.Gang) string {
	sum := []string{contention.Question(gang)}
	for _, demand := range asked.Demands() {
		sum = append(sum, d.name(demand))
	}
	return strings.Join(sum, "/")
}

func (d *demands) name(demand *dra.Demand) string {
	at := slices.IndexFunc(d.known, demand.Same)
	if at < 0 && len(d.known) < mostDemands {
		at, d.known = len(d.known), append(d.known, demand)
	}
	if at < 0 {
		return fmt.Sprintf("%p", demand)
	}
	return strconv.Itoa(at)
}
