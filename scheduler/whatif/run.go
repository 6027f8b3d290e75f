package whatif

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// perGang bounds the evaluations of one run, so that a fault of the queue is an error and not an endless loop.
const perGang = 64

// errRestless says that the bound was reached.
var errRestless = errors.New("the queue does not come to rest")

// run is one run of the queue: the scheduler's decisions about all entities if nothing else changes.
type run struct {
	*cluster
	queue  *waiting.Queue
	reader *waiting.Reader
	// verdicts are the decisions about gangs so far.
	verdicts map[contention.ID]Verdict
	// left is the number of evaluations that the run may still take, evicted whether any unit was evicted.
	left    int
	evicted bool
	// written says that a gang which claims devices was placed since all were evaluated.
	written bool
}

// frozen is a clock that stands still. Its timers never fire.
type frozen struct {
	clock.RealClock
	now time.Time
}

// Now returns the instant.
func (f frozen) Now() time.Time { return f.now }

// Since returns the time since another instant.
func (f frozen) Since(at time.Time) time.Duration { return f.now.Sub(at) }

// AfterFunc does nothing.
func (frozen) AfterFunc(time.Duration, func()) clock.Timer { return nil }

// newRun fills a queue with the entities of a cluster: the places of members that running gangs lack, then those that
// wait.
func (c *cluster) newRun(ctx context.Context) (*run, error) {
	policy := contention.DefaultPolicy()
	policy.Terms, policy.Discipline = c.profile.Placement.Terms(), c.profile.Placement.Discipline()
	queue := waiting.New(timing.Timing{Clock: frozen{now: c.now}, Beside: func(func()) {}}, policy)
	r := &run{cluster: c, queue: queue, verdicts: make(map[contention.ID]Verdict), left: perGang * (len(c.gangs) + 1)}
	r.reader = &waiting.Reader{
		Indices: c.indices, Accelerators: c.accelerators, Stock: c.stock, Protected: c.objects.protected(),
		Budgets: func() []*policyv1.PodDisruptionBudget { return c.objects.Budgets },
		Groups:  func() fwk.PodGroupLister { return c.groups },
		Lives:   c.lives,
	}
	for _, g := range c.sorted() {
		if err := r.restore(ctx, g); err != nil {
			return nil, err
		}
	}
	for _, g := range c.sorted() {
		if err := r.add(ctx, g); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// restore leases places for the members that a running gang lacks, as the scheduler does when it starts.
func (r *run) restore(ctx context.Context, g *gang) error {
	if len(g.running) == 0 {
		return nil
	}
	lacks := *g
	if len(g.running) >= g.minCount() {
		lacks.waiting = nil
	}
	x, err := r.read(ctx, &lacks)
	if err == nil {
		r.queue.HoldMissing(x)
	}
	if errors.Is(err, waiting.ErrRequest) {
		return nil // reported when the gang is evaluated
	}
	return err
}

func (r *run) read(ctx context.Context, g *gang) (*waiting.Question, error) {
	x, err := r.reader.Read(ctx, waiting.Asked{
		Group: g.group, Waiting: g.waiting, Running: g.running, Nodes: r.nodes, Now: r.now,
	})
	if err != nil {
		return x, fmt.Errorf("reading %s: %w", g.key, err)
	}
	return x, nil
}

// add puts a gang into the queue if the scheduler's queue would admit it.
func (r *run) add(ctx context.Context, g *gang) error {
	if !g.complete() || g.scheduler() != r.profile.Scheduler {
		return nil
	}
	x, err := r.read(ctx, g)
	switch {
	case errors.Is(err, waiting.ErrRequest):
		r.wrong(g, err)
	case err != nil:
		return err
	default:
		r.queue.Add(x)
	}
	return nil
}

func (r *run) wrong(g *gang, err error) {
	r.queue.Wrong(g.group)
	r.verdicts[g.id()] = Verdict{State: Wrong, Problem: problem(err)}
}

// problem returns the fault of a request, without the name of the gang.
func problem(err error) string {
	_, text, _ := strings.Cut(err.Error(), waiting.ErrRequest.Error()+": ")
	return text
}

// settle evaluates entities in the queue's order until it is at rest. When the claims of those that start have been
// written, the scheduler evaluates all once more. Those that the machine skips, since one with the same question waits
// already, are read last.
func (r *run) settle(ctx context.Context) error {
	for {
		id, ok := r.queue.Next()
		switch {
		case ok:
		case r.written:
			r.written = false
			r.queue.Again()
			continue
		default:
			return r.settleRest(ctx)
		}
		if err := r.evaluate(ctx, id); err != nil {
			return err
		}
	}
}

// settleRest evaluates those that the machine skips.
func (r *run) settleRest(ctx context.Context) error {
	for _, id := range r.queue.Waiting() {
		if _, done := r.verdicts[id]; !done {
			if err := r.evaluate(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// evaluate has the queue evaluate a gang, and carries out the decision.
func (r *run) evaluate(ctx context.Context, id contention.ID) error {
	if r.left--; r.left < 0 {
		return fmt.Errorf("evaluating %s: %w", id, errRestless)
	}
	name, _ := waiting.NameOf(id)
	g := r.gangs[name]
	if len(g.running) == 0 {
		r.queue.EndHold(id, contention.LateMember)
	}
	x, err := r.read(ctx, g)
	if errors.Is(err, waiting.ErrRequest) {
		r.wrong(g, err)
		return nil
	}
	if err != nil {
		return err
	}
	out := r.queue.Turn(x)
	v := r.decided(g, x, out)
	r.note(id, v)
	if out.Placed != nil {
		return r.place(ctx, g, x, *out.Placed)
	}
	if leave := leaving(out); len(leave) > 0 {
		return r.evict(ctx, x, leave)
	}
	if out.Wait.Cause != contention.Victims && len(g.running) > 0 && g.needed() > 0 {
		return r.move(ctx, g, x, v)
	}
	return nil
}

// leaving returns the units that have to leave for an entity, and those that leave already for whose place it waits.
func leaving(out waiting.Outcome) []contention.ID {
	var ids []contention.ID
	for _, of := range out.Preempted {
		ids = append(ids, of.Victims...)
	}
	if out.Wait.Cause == contention.Victims {
		ids = append(ids, out.Wait.Of...)
	}
	return ids
}

// note records the verdict about a gang. The start of a gang that preempts or moves is no other verdict, but adds its
// place; the outcome for members without which a gang starts is none.
func (r *run) note(id contention.ID, v Verdict) {
	before := r.verdicts[id]
	switch {
	case before.State == "":
	case before.State == Waits && v.State == Fits:
		v.Vacated = r.evicted
	case !before.Starts():
	case v.State == Fits && before.State != Fits:
		before.Where, before.Passes = v.Where, v.Passes
		v = before
	case v.State == Fits:
		for i := range v.Where.Members {
			member := &v.Where.Members[i]
			member.New = member.New || slices.ContainsFunc(before.Where.Members, func(m MemberPlace) bool {
				return m.New && m.Member == member.Member
			})
		}
	default:
		v = before
	}
	r.verdicts[id] = v
}

// place puts a gang on its nodes, and gives it its devices.
func (r *run) place(ctx context.Context, g *gang, x *waiting.Question, placed contention.Placed) error {
	var nodes []string
	for rank, at := range placed.Placement.Nodes {
		m := placed.Gang.Members[rank]
		i := slices.IndexFunc(g.waiting, func(pod *corev1.Pod) bool { return pod.Name == m.Name })
		if i < 0 || m.Placed || m.Late {
			continue
		}
		node := x.View.Tree.Node(at)
		there, err := r.stock.Assign(ctx, g.group, bound(g.waiting[i], node, r.now))
		if err != nil {
			return fmt.Errorf("starting %s: %w", g.key, err)
		}
		r.put(there)
		nodes = append(nodes, node)
		g.waiting, g.running = slices.Delete(slices.Clone(g.waiting), i, i+1), append(g.running, there)
	}
	g.running = snapshot.InRankOrder(g.running)
	r.written = r.written || len(x.Choices[0].Demands()) > 0
	r.queue.Started(g.id(), nodes)
	r.queue.HoldLate(x, placed)
	return r.add(ctx, g) // members that it starts without
}

// evict takes units off their nodes. Gangs of our scheduler among them wait again, in their order.
func (r *run) evict(ctx context.Context, x *waiting.Question, ids []contention.ID) error {
	r.evicted = true
	var again []*gang
	for _, u := range x.View.Units(r.groups) {
		if !slices.Contains(ids, contention.ID(u.Name)) {
			continue
		}
		if err := r.take(u.Pods); err != nil {
			return err
		}
		for _, pod := range u.Pods {
			r.queue.Left(pod)
		}
		if u.Group == nil {
			continue
		}
		key := types.NamespacedName{Namespace: u.Group.Namespace, Name: u.Group.Name}
		if u.Of != "" && slices.Contains(ids, contention.ID(u.Of)) {
			continue // all of the gang leaves
		}
		r.queue.Remove(waiting.IDOf(key))
		delete(r.verdicts, waiting.IDOf(key))
		if u.Of != "" {
			r.gangs[key] = r.gangs[key].bereft(u.Pods, r.now)
			again = slices.DeleteFunc(again, func(g *gang) bool { return g.key == key })
		} else {
			r.gangs[key] = r.gangs[key].restarted(r.now)
		}
		again = append(again, r.gangs[key])
	}
	for _, g := range again {
		if err := r.add(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// move has a gang start again as a whole where the queue leases a place for that, if the members that it lost have no
// room near the others.
func (r *run) move(ctx context.Context, g *gang, x *waiting.Question, v Verdict) error {
	to, ok := r.queue.Move(x)
	if !ok {
		return nil
	}
	v.State, v.Cause, v.NoVictims = Moves, "", ""
	v.Preemption = r.preemption(x, []contention.ID{g.id()}, false)
	whole := x.Choices[0].Gang
	whole.Members = slices.Clone(whole.Members)
	for i := range whole.Members {
		whole.Members[i].Placed, whole.Members[i].Node = false, 0
	}
	v.Where = where(x.View, whole, to)
	if err := r.take(g.running); err != nil {
		return err
	}
	for _, pod := range g.running {
		r.queue.Left(pod)
	}
	r.gangs[g.key] = g.restarted(r.now)
	r.verdicts[g.id()] = v
	return r.add(ctx, r.gangs[g.key])
}

// single returns where a pod that is in no gang would be placed after all gangs. Which of the nodes with room it gets,
// the filters and scores of its scheduler decide.
func (r *run) single(ctx context.Context, pod *corev1.Pod) (Verdict, error) {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	x, err := r.reader.Read(ctx, waiting.Asked{Waiting: []*corev1.Pod{pod}, Nodes: r.nodes, Now: r.now})
	if errors.Is(err, waiting.ErrRequest) {
		return Verdict{State: Wrong, Problem: problem(err)}, nil
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("reading pod %s: %w", name, err)
	}
	answer := contention.Place(x.Choices[0].Ledger, contention.Ask{
		Gang: x.Choices[0].Gang, Needed: 1, End: topology.EndUnknown,
	})
	if pod.Spec.SchedulerName == r.profile.Scheduler { // another scheduler does not know the leases
		answer = r.queue.Trial(x)
	}
	if answer.Refusal != nil {
		return refused(*answer.Refusal), nil
	}
	there, err := r.stock.Assign(ctx, nil, bound(pod, x.View.Tree.Node(answer.Placement.Nodes[0]), r.now))
	if err != nil {
		return Verdict{}, fmt.Errorf("placing pod %s: %w", name, err)
	}
	r.put(there)
	return Verdict{State: Fits, Where: where(x.View, answer.Gang, answer.Placement)}, nil
}

// refused is the verdict about a refusal alone.
func refused(no contention.Refusal) Verdict {
	if no.Wrong != nil {
		return Verdict{State: Wrong, Problem: no.String()}
	}
	return Verdict{State: Waits, Shortfall: no.Short}
}
