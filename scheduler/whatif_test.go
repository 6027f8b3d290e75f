package scheduler_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// draft is a cluster that is not played yet.
type draft struct {
	whatif.Objects
	members map[string][]*corev1.Pod
}

func (d *draft) add(group *schedulingv1beta1.PodGroup, members []*corev1.Pod) {
	d.PodGroups, d.Pods = append(d.PodGroups, group), slices.Concat(d.Pods, members)
	d.members[group.Name] = members
}

// drawDraft draws a few cliques, important gangs on some of their nodes, and less important ones that wait.
func drawDraft(r *rand.Rand) *draft {
	d := &draft{members: make(map[string][]*corev1.Pod)}
	count, size := 1+r.IntN(3), 2+r.IntN(3)
	d.Nodes = cliques(count, size)
	for c := range count {
		for n := range size {
			if r.IntN(2) == 0 {
				continue
			}
			group, members := running(fmt.Sprintf("runs-%d-%d", c, n), 100, nodeName(c, n))
			if r.IntN(3) > 0 {
				endsIn(group, time.Duration(1+r.IntN(5))*time.Hour+10*time.Minute) // no end is twice as far as another
			}
			d.add(group, members)
		}
	}
	for i := range 2 + r.IntN(4) {
		group, members := gang(
			fmt.Sprint("waits-", i),
			1+r.IntN(1+r.IntN(count*size)),
			[]string{"", "clique"}[r.IntN(2)],
		)
		queuedAt(group, r.IntN(50))
		raise(group, members, int32(r.IntN(2)))
		gpus := []string{"4", "4", "2"}[r.IntN(3)]
		for _, m := range members {
			asks(m, gpu, gpus)
		}
		if r.IntN(3) == 0 {
			endsIn(group, time.Duration(r.IntN(400))*time.Minute)
		}
		if len(members) > 1 && r.IntN(4) == 0 {
			group.Spec.SchedulingPolicy.Gang.MinCount-- // it can do without its last
		}
		d.add(group, members)
	}
	return d
}

// What the what-if says before is what the scheduler does: the same gangs start, each member on the node that was named, and the
// others wait for the same reason, with the same reservations.
func TestWhatIf_IsWhatTheSchedulerDoes(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			verify(t, drawDraft(rand.New(rand.NewPCG(seed, 7))))
		})
	}
}

// verify plays a cluster, and holds the scheduler to what was said before.
func verify(t *testing.T, d *draft) {
	t.Helper()
	said, err := whatif.New(d.Objects, asShipped(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := said.Queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := unstarted(t, slices.Concat(as(d.Nodes...), as(d.PodGroups...), as(d.Pods...), as(d.Devices.Slices...),
		as(d.Devices.Classes...), as(d.Devices.Claims...))...)
	queue := c.startWatched(t)
	for _, v := range verdicts {
		compare(t, c, v, d.members[v.Gang.Name.Name])
	}
	var want []waits
	for _, v := range verdicts {
		want = append(want, saidOf(v))
	}
	got := queued(queue, verdicts, want)
	if startsByNumber(d, verdicts) {
		refusals(want)
		refusals(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the scheduler's queue is another one (-what-if +scheduler):\n%s", diff)
	}
	if t.Failed() {
		t.Log(picture(d))
	}
}

// startsByNumber reports whether a gang starts that asks for published devices by number. What such a gang gives back is known when its
// pod names the claim that is made for it; until then, no end makes room there.
func startsByNumber(d *draft, verdicts []whatif.Verdict) bool {
	return len(d.Devices.Slices) > 0 && slices.ContainsFunc(verdicts, func(v whatif.Verdict) bool {
		return v.State == whatif.Fits &&
			len(d.members[v.Gang.Name.Name][0].Spec.ResourceClaims) == 0
	})
}

// refusals leaves only the refusals.
func refusals(all []waits) {
	for i, w := range all {
		all[i] = waits{Gang: w.Gang, Refusal: w.Refusal}
	}
}

// startWatched starts a scheduler and returns its waiting queue. Claims that it makes for extended resources get names, as an API server
// gives them.
func (c *cluster) startWatched(t *testing.T) *waiting.Queue {
	t.Helper()
	c.PrependReactor("create", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, _ := action.(clienttesting.CreateAction)
		if claim, ok := create.GetObject().(*resourcev1.ResourceClaim); ok && claim.Name == "" {
			claim.Name = "cards-of-" + claim.OwnerReferences[0].Name
			claim.UID = types.UID(claim.Name)
		}
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	registry, queue := scheduler.Plugins(timing.With(clock.RealClock{}))
	c.launch(ctx, t, c, shipped(t), registry)
	return queue
}

// compare waits for the scheduler's decision about a gang and holds it to the verdict.
func compare(t *testing.T, c *cluster, v whatif.Verdict, members []*corev1.Pod) {
	t.Helper()
	if v.State != whatif.Fits {
		if why := c.waitRejected(t, v.Gang.Name.Name); v.Problem != "" && why != v.Problem {
			t.Errorf("%s waits: %s\nthe what-if says: %s", v.Gang.Name.Name, why, v.Problem)
		}
		c.nobodyBound(t, members)
		return
	}
	var starts []*corev1.Pod
	for _, seat := range v.Where.Seats {
		starts = append(
			starts,
			members[slices.IndexFunc(members, func(p *corev1.Pod) bool { return p.Name == seat.Member })],
		)
	}
	for i, node := range c.waitBound(t, starts) {
		if seat := v.Where.Seats[i]; seat.Node != node {
			t.Errorf("%s is on %s, and was to be on %s", seat.Member, node, seat.Node)
		}
	}
	for _, p := range members {
		if !slices.Contains(starts, p) {
			c.nobodyBound(t, []*corev1.Pod{p})
		}
	}
}

// waits is why a gang waits, and the place that is reserved for it.
type waits struct {
	Gang, Cause, Refusal string
	Behind               []string
	Reserved             *reserved
}

// reserved is a place. Instants that rest on guesses move with the clock, and are zero.
type reserved struct {
	Within     string
	Nodes      []string
	Open, Firm bool
	At         time.Time
}

// saidOf is what the what-if says.
func saidOf(v whatif.Verdict) waits {
	out := waits{Gang: v.Gang.Name.String(), Cause: string(v.Cause)}
	if v.Shortfall != nil {
		out.Refusal = v.Shortfall.String()
	}
	if v.Behind != nil {
		for _, of := range v.Behind.Of {
			out.Behind = append(out.Behind, of.For.String())
		}
	}
	if r := v.Reserved; r != nil {
		place := &reserved{Within: r.Where.Within.String(), Open: r.Open, Firm: !r.Estimated}
		for _, seat := range r.Where.Seats {
			place.Nodes = append(place.Nodes, seat.Node)
		}
		slices.Sort(place.Nodes)
		place.Nodes = slices.Compact(place.Nodes)
		if place.Firm {
			place.At = r.At
		}
		out.Reserved = place
	}
	return out
}

// done is what the scheduler's queue says.
func done(queue *waiting.Queue, v whatif.Verdict) waits {
	out := waits{Gang: v.Gang.Name.String()}
	wait, queues := queue.Reason(waiting.IDOf(v.Gang.Name))
	if !queues || v.State == whatif.Wrong {
		return out
	}
	out.Cause = string(wait.Cause)
	switch {
	case wait.Refusal != nil:
		out.Refusal = wait.Refusal.String()
	case wait.Cause == contention.OtherLease:
		for _, of := range wait.Of {
			out.Behind = append(out.Behind, string(of))
		}
	}
	for _, l := range queue.Leases() {
		if l.Owner != v.Gang.Name {
			continue
		}
		out.Reserved = &reserved{
			Within: l.Lease.Within.String(), Open: l.Lease.Open, Firm: l.Lease.Firm,
			Nodes: slices.Sorted(maps.Keys(l.Room)),
		}
		if l.Lease.Firm {
			out.Reserved.At = time.Unix(l.Lease.Instant, 0).UTC()
		}
	}
	return out
}

// queued returns what the scheduler's queue says when it is what is wanted, or after some seconds.
func queued(queue *waiting.Queue, verdicts []whatif.Verdict, want []waits) []waits {
	var got []waits
	for range 500 {
		got = nil
		for _, v := range verdicts {
			got = append(got, done(queue, v))
		}
		if cmp.Equal(got, want) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return got
}

// withDevices are the objects that a what-if takes apart.
func (d *draft) withDevices(objects []runtime.Object) {
	for _, o := range objects {
		switch o := o.(type) {
		case *resourcev1.ResourceSlice:
			d.Devices.Slices = append(d.Devices.Slices, o)
		case *resourcev1.DeviceClass:
			d.Devices.Classes = append(d.Devices.Classes, o)
		case *resourcev1.ResourceClaim:
			d.Devices.Claims = append(d.Devices.Claims, o)
		}
	}
}

// drawDevices draws cliques of nodes with pairs of devices, some of them broken, gangs that run with some of the pairs, and gangs
// that wait for others.
func drawDevices(r *rand.Rand) *draft {
	d := &draft{members: make(map[string][]*corev1.Pod)}
	count, size := 1+r.IntN(3), 2+r.IntN(3)
	d.Nodes = cliques(count, size)
	d.withDevices(classes())
	d.Devices.Classes[0].Spec.ExtendedResourceName = new(string(gpu))
	for _, node := range d.Nodes {
		delete(node.Status.Allocatable, gpu)
		delete(node.Status.Capacity, gpu)
		d.withDevices([]runtime.Object{publishes(node, 4, max(0, r.IntN(6)-3))})
	}
	for c := range count {
		for n := range size {
			if r.IntN(3) > 0 {
				continue
			}
			pairs := 1 + r.IntN(2)
			group, members, claims := claiming(fmt.Sprintf("runs-%d-%d", c, n), 1, pairs, "gpu")
			raise(group, members, 100)
			allocated(members, claims, pairs, nodeName(c, n))
			if r.IntN(3) > 0 {
				endsIn(group, time.Duration(1+r.IntN(5))*time.Hour+10*time.Minute) // no end is twice as far as another
			}
			d.withDevices(claims)
			d.add(group, members)
		}
	}
	for i := range 2 + r.IntN(3) {
		class := "gpu"
		if r.IntN(8) == 0 {
			class = "gpus" // there is none
		}
		group, members, claims := claiming(
			fmt.Sprint("waits-", i), 1+r.IntN(1+r.IntN(count*size)), 1+r.IntN(4), class)
		queuedAt(group, r.IntN(50))
		raise(group, members, int32(r.IntN(2)))
		if r.IntN(3) == 0 {
			endsIn(group, time.Duration(r.IntN(400))*time.Minute)
		}
		if r.IntN(4) == 0 { // it asks for GPUs by number
			claims = nil
			each := strconv.Itoa(1 + r.IntN(4)) // of different numbers on one node nobody knows beforehand what is left
			for _, m := range members {
				m.Spec.ResourceClaims, m.Status.ResourceClaimStatuses = nil, nil
				m.Spec.Containers[0].Resources.Claims = nil
				asks(m, gpu, each)
			}
		}
		d.withDevices(claims)
		d.add(group, members)
	}
	return d
}

// What it says before of gangs that claim devices is what the scheduler does, too, and in the same words.
func TestWhatIf_IsWhatTheSchedulerDoesWithDevices(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			verify(t, drawDevices(rand.New(rand.NewPCG(seed, 11))))
		})
	}
}

func asShipped(t *testing.T) whatif.Profile {
	t.Helper()
	args, err := config.Placement(nil)
	if err != nil {
		t.Fatal(err)
	}
	return whatif.Profile{Scheduler: scheduler.ProfileName, Placement: args}
}

// picture says what was drawn, a line for each gang.
func picture(d *draft) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes\n", len(d.Nodes))
	for _, g := range d.PodGroups {
		first := d.members[g.Name][0]
		gpus := first.Spec.Containers[0].Resources.Requests[gpu]
		pairs := 0
		for _, claim := range d.Devices.Claims {
			if claim.Name == first.Name+"-devices" {
				pairs = len(claim.Spec.Devices.Constraints)
			}
		}
		fmt.Fprintf(&b, "%s on %q: %d members, %d needed, of %s GPUs or %d pairs, priority %d, %v\n",
			g.Name, first.Spec.NodeName, len(d.members[g.Name]), g.Spec.SchedulingPolicy.Gang.MinCount,
			gpus.String(), pairs, *g.Spec.Priority, g.Annotations)
	}
	return b.String()
}

// Whom an important gang would end, and where it would start then, is what happens when it comes.
func TestWhatIf_NamesTheVictims(t *testing.T) {
	s := full(2, 4)
	since(s.groups["low-0-0"], s.pods["low-0-0"], 2*time.Hour, 0)
	since(s.groups["low-1-0"], s.pods["low-1-0"], 4*time.Hour, time.Minute) // it saved: its end is the cheapest
	var objects whatif.Objects
	objects.Nodes = cliques(2, 4)
	for name, group := range s.groups {
		objects.PodGroups, objects.Pods = append(objects.PodGroups, group), slices.Concat(objects.Pods, s.pods[name])
	}
	high, members := ranked("high", 4, "clique", unchanged)
	raise(high, members, 1000)
	before, err := whatif.New(objects, asShipped(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	v, err := before.With(high, members, whatif.Devices{}).
		Why(t.Context(), types.NamespacedName{Namespace: namespace, Name: "high"})
	if err != nil || v.State != whatif.Preempts {
		t.Fatalf("%v, %+v", err, v)
	}
	c, nodes := s.play(t, unchanged)
	for i, seat := range v.Where.Seats {
		if seat.Node != nodes[i] {
			t.Errorf("%s is on %s, and was to be on %s", seat.Member, nodes[i], seat.Node)
		}
	}
	var foreseen []string
	for _, victim := range v.Preemption.Victims {
		foreseen = append(foreseen, strings.TrimPrefix(victim.Name, namespace+"/"))
	}
	if gone, broken := s.gone(t, c); !slices.Equal(gone, foreseen) || broken != nil {
		t.Errorf("%v left, and of %v some; the what-if names %v", gone, broken, foreseen)
	}
}
