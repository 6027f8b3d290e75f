package waiting_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// busy is a clique of four nodes, three of them busy for an hour, and a gang that has its place there.
func busy(t *testing.T) (*fleet, waiting.Outcome) {
	t.Helper()
	f := newFleet(t, 4, 4)
	f.runs("runs", "8", time.Hour, 0, 1, 2)
	return f, f.asks(f.group("head", 4), "8")
}

func TestQueue_HeadHasALeaseByNames(t *testing.T) {
	f, out := busy(t)
	if out.Placed != nil || out.Lease == nil || out.Lease.Open || out.Lease.Instant != began.Add(time.Hour).Unix() {
		t.Fatalf("outcome is %+v", out)
	}
	leases := f.queue.Leases()
	if len(leases) != 1 || leases[0].Owner != (types.NamespacedName{Namespace: "team", Name: "head"}) ||
		len(leases[0].Room) != 4 {
		t.Fatalf("leases are %+v", leases)
	}
	room := leases[0].Room["n00003"]
	if n := room[gpu]; n.Value() != 8 {
		t.Errorf("%v GPUs of a node are leased, want 8", n)
	}
}

// A later gang passes if it ends in time, and waits with a reason if it does not.
func TestQueue_OnlyShortGangsPass(t *testing.T) {
	f, _ := busy(t)
	f.clock.Step(time.Second)
	long := f.asks(f.group("long", 1), "8")
	if long.Placed != nil || long.Wait.Cause != contention.OtherLease ||
		!slices.Equal(long.Wait.Of, []contention.ID{"team/head"}) {
		t.Errorf("the long gang: %+v", long)
	}
	short := f.group("short", 1)
	short.Annotations[topology.AnnotationExpectedEnd] = began.Add(time.Minute).UTC().Format(time.RFC3339)
	if out := f.asks(short, "8"); out.Placed == nil {
		t.Errorf("the short gang waits: %+v", out.Wait)
	}
}

// The same lease is read in the numbers of another view: a required label that is no level makes its own.
func TestQueue_LeasesAreTranslated(t *testing.T) {
	f, _ := busy(t)
	for i, n := range f.nodes {
		n.Node().Labels["example.com/row"] = fmt.Sprint("row", (len(f.nodes)-i)/2) // another order of nodes
	}
	f.clock.Step(time.Second)
	other := f.group("other", 1)
	other.Annotations[topology.AnnotationRequiredTopology] = "example.com/row"
	if out := f.asks(other, "8"); out.Placed != nil || out.Wait.Cause != contention.OtherLease {
		t.Errorf("the other gang: %+v", out)
	}
}

// Pods whose nodes the framework chooses stay off leased capacity, unless they request none of it or precede the owner.
func TestQueue_GuardsLeasedNodes(t *testing.T) {
	f, _ := busy(t)
	f.clock.Step(time.Second)
	important := pod("important", "1")
	important.Spec.Priority = new(int32(1000))
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a GPU": {pod("single", "1"), false}, "none": {pod("cpu", "0"), true}, "important": {important, true},
	} {
		c.pod.CreationTimestamp.Time = f.clock.Now()
		x, err := f.reader.Single(c.pod, f.nodes)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.queue.Guard(x).Admits(c.pod, "n00003"); got != c.want {
			t.Errorf("a pod that asks for %s is admitted: %v", name, got)
		}
	}
}

// A victim that has a grace is known to leave from its eviction on, before the next evaluation: its end is not an early
// one.
func TestQueue_VictimsLeaveWhenTheirGraceIsOver(t *testing.T) {
	f := newFleet(t, 1, 1)
	for _, p := range f.runs("victim", "8", time.Hour, 0) {
		p.Spec.TerminationGracePeriodSeconds = new(int64(60))
	}
	gang := f.group("gang", 1)
	gang.Spec.Priority = new(int32(10))
	out := f.asks(gang, "8")
	if len(out.Preempted) != 1 {
		t.Fatalf("outcome is %+v", out)
	}
	f.queue.Evicting(out.Preempted[0].Victims)
	want := contention.End{At: began.Add(time.Minute).Unix(), Certainty: contention.Certain}
	if u := f.queue.Unit("team/victim"); !u.Leaving || u.End != want {
		t.Errorf("the victim is %+v, want one that leaves, with the end %+v", u, want)
	}
}

// State that was written as JSON and read by another scheduler is the same, and binds the same.
func TestQueue_StateSurvivesJSON(t *testing.T) {
	f, before := busy(t)
	content, err := json.Marshal(f.queue.State())
	if err != nil {
		t.Fatal(err)
	}
	var state waiting.State
	if err := json.Unmarshal(content, &state); err != nil {
		t.Fatal(err)
	}
	next := newFleet(t, 4, 4)
	next.runs("runs", "8", time.Hour, 0, 1, 2)
	next.queue = waiting.New(timing.Timing{Clock: f.clock, Beside: func(func()) {}}, contention.DefaultPolicy())
	next.clock = f.clock
	next.queue.Restore(state)
	next.clock.Step(time.Second)
	if out := next.asks(next.group("late", 1), "8"); out.Placed != nil || out.Wait.Cause != contention.OtherLease {
		t.Errorf("the late gang: %+v", out)
	}
	leases := next.queue.Leases()
	if len(leases) != 1 || leases[0].Lease.Instant != before.Lease.Instant || len(leases[0].Room) != 4 ||
		leases[0].Lease.Budget != before.Lease.Budget {
		t.Errorf("leases are %+v, before %+v", leases, before.Lease)
	}
}

// A scheduler that begins may have asked for a pod before it reads the state of the last one: the pod has its place
// once, and gangs have the places that were stored.
func TestQueue_RestoresBesideWhatWasAskedSince(t *testing.T) {
	f := newFleet(t, 4, 4)
	f.runs("runs", "8", time.Hour, 0, 1, 2, 3)
	single := pod("single", "8")
	f.refuses(single)
	f.clock.Step(time.Second)
	f.asks(f.group("head", 2), "8")
	state := f.queue.State()
	if n := len(state.Machine.Leases); n != 2 {
		t.Fatalf("%d leases are written, want 2", n)
	}
	f.queue = waiting.New(timing.Timing{Clock: f.clock, Beside: func(func()) {}}, contention.DefaultPolicy())
	f.refuses(single)
	f.queue.Restore(state)
	f.refuses(single)
	leases := f.queue.Leases()
	if len(leases) != 2 {
		t.Fatalf("leases are %+v, want those of the pod and of the gang", leases)
	}
	for _, l := range leases {
		if len(l.Room) == 0 {
			t.Errorf("the place of %v is lost", l.Owner)
		}
	}
	if next, ok := f.queue.Next(); ok {
		t.Errorf("%s is still to be asked", next)
	}
}

// An administrator revokes a reservation: the gang waits on, without one.
func TestQueue_AnnotationRevokes(t *testing.T) {
	f, _ := busy(t)
	head := f.groups[types.NamespacedName{Namespace: "team", Name: "head"}]
	head.Annotations[topology.AnnotationReservation] = topology.NoReservation
	f.queue.Release("team/head") // as the plugin does when annotations change
	if out := f.asks(head, "8"); out.Placed != nil || out.Lease != nil {
		t.Errorf("the head: %+v", out)
	}
	if n := len(f.queue.Leases()); n != 0 {
		t.Errorf("%d leases", n)
	}
}

// A gang that the framework refuses after it was placed leaves the queue, and holds up no other.
func TestQueue_RefusedPlansHoldUpNone(t *testing.T) {
	f := newFleet(t, 2, 2)
	if out := f.asks(f.group("first", 2), "8"); out.Placed == nil {
		t.Fatalf("the first: %+v", out)
	}
	f.clock.Step(time.Second)
	if out := f.asks(f.group("second", 2), "8"); out.Placed == nil {
		t.Errorf("the second: %+v", out)
	}
	if _, leased := f.queue.Started("team/second", []string{"n00000", "n00001"}); leased {
		t.Error("it had a lease")
	}
}

// An agent of a DaemonSet starts on leased nodes, too; one that requests GPUs waits for its turn as all others do.
func TestReader_AgentsIgnoreLeasesButForGPUs(t *testing.T) {
	f, _ := busy(t)
	for gpus, guarded := range map[string]bool{"0": false, "8": true} {
		agent := pod("agent", gpus)
		agent.CreationTimestamp = metav1.NewTime(f.clock.Now().Add(time.Second)) // behind the head
		agent.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: new(true),
		}}
		x, err := f.reader.Single(agent, f.nodes)
		if err != nil || (x != nil) != guarded {
			t.Errorf("with %s GPUs: guarded %t, %v", gpus, x != nil, err)
		}
		if guarded && f.queue.Guard(x).Admits(agent, "n00003") {
			t.Error("the agent may have the GPUs of a leased node")
		}
	}
}

// A pod of a StatefulSet is created again under its name: its run time is predicted anew.
func TestQueue_PredictsAnewForAPodOfTheSameName(t *testing.T) {
	f := newFleet(t, 1, 1)
	const id = "team/pod/"
	predicted := 0
	key := func() forecast.Key {
		predicted++
		return forecast.Key{}
	}
	f.queue.Learn().Waits(id, key)
	f.queue.PodGone(id)
	f.queue.Learn().Waits(id, key)
	if predicted != 2 {
		t.Errorf("predicted %d times, want 2", predicted)
	}
}

// A gang that the framework refuses in its leased place is not in the machine: the instant that was reported for it is
// forgotten with it all the same. Another gang of its name has none.
func TestQueue_ForgetsTheReportOfARefusedGang(t *testing.T) {
	f, _ := busy(t)
	f.nodes = newFleet(t, 4, 4).nodes // what ran has ended
	f.clock.Step(time.Second)
	f.queue.Changed()
	head := f.groups[types.NamespacedName{Namespace: "team", Name: "head"}]
	if out := f.asks(head, "8"); out.Placed == nil {
		t.Fatalf("the head: %+v", out)
	}
	f.clock.Step(time.Second)
	f.asks(f.group("second", 2), "8")
	f.queue.Forget("team/head")
	f.clock.Step(time.Second)
	if out := f.asks(f.group("head", 4), "8"); out.Placed == nil {
		t.Fatalf("the new head: %+v", out)
	}
	if at, leased := f.queue.Started("team/head", []string{"n00000", "n00001", "n00002", "n00003"}); leased {
		t.Errorf("the new gang was expected at %s", at)
	}
}

// A label that no gang asks for is changed on a node, and one that makes a level, or that a pod selects by.
func TestQueue_LabelsThatMatter(t *testing.T) {
	f := newFleet(t, 2, 2)
	group := f.group("picky", 3)
	x := f.question(group, "8")
	for _, p := range x.Waiting {
		p.Spec.NodeSelector = map[string]string{"example.com/pool": "a"}
	}
	f.queue.Turn(x)
	before := f.nodes[0].Node()
	for key, want := range map[string]bool{
		"example.com/jobs": false, "example.com/pool": true, topology.LabelClique: true,
		"topology.kubernetes.io/zone": true,
	} {
		after := before.DeepCopy()
		after.Labels[key] = "other"
		if got := f.queue.Matters(before, after); got != want {
			t.Errorf("a change of %s matters: %v", key, got)
		}
	}
}
