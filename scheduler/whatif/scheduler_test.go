package whatif_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// The scheduler carries out the prediction of the what-if: the same gangs start, each member on the node that was
// named, and the others wait for the same reason, with the same reservations.
func TestWhatIf_IsWhatTheSchedulerDoes(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			verify(t, drawDraft(rand.New(rand.NewPCG(seed, 7))))
		})
	}
}

// verify plays a cluster, and compares the scheduler's decisions with the prediction.
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
	c := schedulertest.NewUnstartedCluster(
		t,
		d.Nodes,
		d.PodGroups,
		d.Pods,
		d.Devices.Slices,
		d.Devices.Classes,
		d.Devices.Claims,
	)
	c.NameClaims()
	queue := c.StartWithQueue(t)
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

// startsByNumber reports whether a gang starts that asks for published devices by number. The devices that such a gang
// gives back are known when its pod names the claim that is made for it; until then, no end makes room there.
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

// compare waits for the scheduler's decision about a gang and holds it to the verdict.
func compare(t *testing.T, c *schedulertest.Cluster, v whatif.Verdict, members []*corev1.Pod) {
	t.Helper()
	if v.State != whatif.Fits {
		if why := c.WaitRejected(t, v.Gang.Name.Name); v.Problem != "" && why != v.Problem {
			t.Errorf("%s waits: %s\nthe what-if says: %s", v.Gang.Name.Name, why, v.Problem)
		}
		c.ExpectUnbound(t, members)
		return
	}
	var starts []*corev1.Pod
	for _, member := range v.Where.Members {
		starts = append(
			starts,
			members[slices.IndexFunc(members, func(p *corev1.Pod) bool { return p.Name == member.Member })],
		)
	}
	for i, node := range c.WaitBound(t, starts) {
		if member := v.Where.Members[i]; member.Node != node {
			t.Errorf("%s is on %s, and was to be on %s", member.Member, node, member.Node)
		}
	}
	for _, p := range members {
		if !slices.Contains(starts, p) {
			c.ExpectUnbound(t, []*corev1.Pod{p})
		}
	}
}

// waits is the reason for which a gang waits, and the place that is reserved for it.
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

// saidOf returns the what-if's prediction.
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
		for _, member := range r.Where.Members {
			place.Nodes = append(place.Nodes, member.Node)
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

// done returns the state of the scheduler's queue.
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

// queued returns the state of the scheduler's queue when it is the wanted one, or after some seconds.
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

// The scheduler carries out the prediction of the what-if for gangs that claim devices, too, and in the same words.
func TestWhatIf_IsWhatTheSchedulerDoesWithDevices(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
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

// An important gang evicts the predicted gangs, and starts at the predicted place, when it is created.
func TestWhatIf_NamesTheVictims(t *testing.T) {
	s := schedulertest.NewFullFleet(2, 4)
	schedulertest.SetRunning(s.Groups["low-0-0"], s.Pods["low-0-0"], 2*time.Hour, 0)
	schedulertest.SetRunning(
		s.Groups["low-1-0"],
		s.Pods["low-1-0"],
		4*time.Hour,
		time.Minute,
	) // it saved: its end is the cheapest
	var objects whatif.Objects
	objects.Nodes = schedulertest.Cliques(2, 4)
	for name, group := range s.Groups {
		objects.PodGroups, objects.Pods = append(objects.PodGroups, group), slices.Concat(objects.Pods, s.Pods[name])
	}
	high, members := schedulertest.Gang("high", 4, "clique")
	schedulertest.SetPriority(high, members, 1000)
	before, err := whatif.New(objects, asShipped(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	v, err := before.With(high, members, whatif.Devices{}).
		Why(t.Context(), types.NamespacedName{Namespace: schedulertest.Namespace, Name: "high"})
	if err != nil || v.State != whatif.Preempts {
		t.Fatalf("%v, %+v", err, v)
	}
	c, nodes := s.Preempt(t, func(*corev1.Pod) {})
	for i, member := range v.Where.Members {
		if member.Node != nodes[i] {
			t.Errorf("%s is on %s, and was to be on %s", member.Member, nodes[i], member.Node)
		}
	}
	var foreseen []string
	for _, victim := range v.Preemption.Victims {
		foreseen = append(foreseen, strings.TrimPrefix(victim.Name, schedulertest.Namespace+"/"))
	}
	if gone, broken := s.Evicted(t, c); !slices.Equal(gone, foreseen) || broken != nil {
		t.Errorf("%v left, and of %v some; the what-if names %v", gone, broken, foreseen)
	}
}
