package whatif

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/scheduler/victims"
	"github.com/lockstep-project/lockstep/topology"
)

// head is the first gang of the queue that has no room, and the place that is kept for it.
type head struct {
	gang  *gang
	kept  topology.Reservation
	rooms rooms
	view  snapshot.View
}

// outcome is what becomes of a gang when its turn comes.
type outcome struct {
	view snapshot.View
	// asked is the question with devices in it; empty if it could not be read.
	asked asked
	// ledger is where it was placed, or not.
	ledger topology.Ledger
	answer decision.Answer
	// own is where it would go if nobody were before it; it is set if answer is no because somebody is.
	own *decision.Answer
	// head is who keeps a place before it, with the place as it was when the gang was asked about; nil for nobody.
	head *head
	// kept is the place that is kept for the gang itself.
	kept *topology.Reservation
	// choice is who would leave for it, nil for nobody; spared says why.
	choice *victims.Choice
	spared string
	// moves says that choice is what is left of the gang itself: all of it starts again elsewhere.
	moves bool
}

// starts reports whether the gang gets its nodes, be it by preemption.
func (o outcome) starts() bool { return o.answer.Refusal == nil || o.choice != nil }

// play is one pass over the queue: what the scheduler decides about each gang, one after another, if nothing else changes.
type play struct {
	*stage
	// queue is who is still to be asked, in order.
	queue []*gang
	head  *head
	// asked are the refusals since the stage changed last, by question: who asks the same is told the same.
	asked map[string]outcome
	at    int
}

func (s *stage) play(queue []*gang) *play {
	p := &play{stage: s, queue: slices.Clone(queue)}
	slices.SortFunc(p.queue, byOrder)
	return p
}

func byOrder(a, b *gang) int { return a.order.Compare(b.order) }

// queue are the gangs that the scheduler asks about, in order.
func (s *stage) queue() []*gang {
	queue := slices.DeleteFunc(
		s.sorted(),
		func(g *gang) bool { return !g.complete() || g.scheduler() != s.profile.Scheduler },
	)
	slices.SortFunc(queue, byOrder)
	return queue
}

// next decides about the first of the queue; nil at its end.
func (p *play) next(ctx context.Context) (*gang, outcome, error) {
	if len(p.queue) == 0 {
		return nil, outcome{}, nil
	}
	g := p.queue[0]
	p.queue = p.queue[1:]
	o, err := p.decide(ctx, g)
	if err != nil {
		return nil, outcome{}, fmt.Errorf("deciding about %s: %w", g.key, err)
	}
	return g, o, nil
}

// until plays up to the gang and returns what becomes of it; false if it is not in the queue.
func (p *play) until(ctx context.Context, name types.NamespacedName) (outcome, bool, error) {
	for {
		g, o, err := p.next(ctx)
		if g == nil || err != nil {
			return outcome{}, false, err
		}
		if g.key == name {
			return o, true, nil
		}
		if err := p.apply(ctx, g, o); err != nil {
			return outcome{}, false, err
		}
	}
}

// decide asks what the plugins ask, in their order.
func (p *play) decide(ctx context.Context, g *gang) (outcome, error) {
	view, err := p.view(g.group)
	if err != nil {
		return outcome{}, err
	}
	core, wrong := read(view, g.group, g.waiting, g.running)
	if wrong != nil {
		return outcome{view: view, answer: decision.Answer{Gang: core, Refusal: wrong}}, nil
	}
	question := fmt.Sprint(decision.Question(core), g.order.Priority, g.needed(), p.endOf(g), never(g))
	claims := p.stock.Claims(g.waiting)
	if known, ok := p.known(question); ok && !claims {
		return known, nil
	}
	with, err := p.ask(ctx, view, devices.Question{
		Group: g.group, Waiting: g.waiting, Ledger: view.Ledger(p.heldFor(g.key)), Gang: core,
	})
	if errors.Is(err, devices.ErrClaims) {
		return outcome{view: view, answer: decision.Answer{Gang: core, Refusal: &decision.Refusal{Wrong: err}}}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	o := p.inTurn(ctx, g, view, with)
	if no := o.answer.Refusal; no == nil || no.Short == nil {
		return o, nil
	}
	if p.head == nil && len(g.running) == 0 {
		p.keep(g, &o)
	}
	p.preempt(g, &o)
	// Nothing in what is told others has a member's name; what is claimed is not in the question.
	if o.kept == nil && o.choice == nil && len(core.Shapes) == 1 && !claims {
		p.asked[question] = o
	}
	return o, nil
}

// endOf is when the gang would end. An end that should have come already says nothing.
func (p *play) endOf(g *gang) int64 {
	if end := snapshot.EndOf(g.group); end > p.now.Unix() {
		return end
	}
	return topology.EndUnknown
}

// known is what another gang with the same question was told, if nothing has changed since.
func (p *play) known(question string) (outcome, bool) {
	if p.asked == nil || p.at != p.changes {
		p.asked, p.at = make(map[string]outcome), p.changes
	}
	o, ok := p.asked[question]
	return o, ok && o.head == p.head
}

// inTurn places the gang. Of several choices of devices that its members share, the first is taken whose nodes hold it.
func (p *play) inTurn(ctx context.Context, g *gang, view snapshot.View, with asked) outcome {
	first := p.choose(ctx, g, view, with, with.questions[0])
	for _, other := range with.questions[1:] {
		if first.answer.Refusal == nil {
			break
		}
		if o := p.choose(ctx, g, view, with, other); o.answer.Refusal == nil {
			first = o
		}
	}
	first.asked = with
	return first
}

// choose places the gang by one choice, minding the one for which a place is kept. A gang that runs gets its lost members back whoever
// waits.
func (p *play) choose(
	ctx context.Context, g *gang, view snapshot.View, with asked, question devices.Asked,
) outcome {
	ledger, ask := question.Ledger, decision.Ask{Gang: question.Gang, Needed: g.needed(), End: p.endOf(g)}
	if p.head == nil || len(g.running) > 0 {
		return outcome{view: view, ledger: ledger, answer: decision.Place(ledger, ask)}
	}
	first, wrong := read(view, p.head.gang.group, p.head.gang.waiting, nil)
	if wrong != nil {
		return outcome{view: view, ledger: ledger, answer: decision.Place(ledger, ask)}
	}
	alone := ask
	pair, holds := p.behind(ctx, view, with, question, first)
	ledger, ask.Gang = pair.Ledger, pair.Gang
	turn := decision.Turn{
		Head:    decision.Ask{Gang: pair.First, Needed: p.head.gang.needed()},
		Running: func() []topology.Running { return snapshot.Ends(holds(view.Units(p.groups))) },
		Apart:   pair.Apart,
		Keeps: func(node int) bool {
			_, kept := p.head.rooms[view.Tree.Node(node)]
			return kept
		},
	}
	answer, kept := turn.Behind(ledger, ask)
	if kept != nil {
		p.head = newHead(p.head.gang, view, pair.First, *kept)
	}
	o := outcome{view: view, ledger: ledger, answer: answer, head: p.head}
	if answer.Refusal == nil {
		return o
	}
	if own := decision.Place(ledger, ask); own.Refusal == nil {
		o.own = &own
	}
	// Whom it may end for its own place is asked without the first.
	o.answer, o.ledger = answer.Of(alone), question.Ledger
	return o
}

// keep keeps a place for the gang, which becomes the head, if anybody's end helps it.
func (p *play) keep(g *gang, o *outcome) {
	ask := decision.Ask{Gang: o.answer.Gang, Needed: g.needed()}
	ends := snapshot.Ends(o.asked.holds(o.view.Units(p.groups)))
	if o.kept = decision.Keep(o.ledger, ends, ask); o.kept != nil {
		p.head = newHead(g, o.view, o.answer.Gang, *o.kept)
	}
}

func newHead(g *gang, view snapshot.View, core topology.Gang, kept topology.Reservation) *head {
	h := &head{gang: g, kept: kept, rooms: make(rooms), view: view}
	for rank, at := range kept.Placement.Nodes {
		h.rooms.add(view.Tree.Node(at), view.Room(core.Shapes[core.Members[rank].Shape]))
	}
	return h
}

// preempt finds out who would leave for a gang without room; if nobody can, whether all of it starts again elsewhere.
func (p *play) preempt(g *gang, o *outcome) {
	asked := unplaced.Gang{
		Group:        g.group,
		Waiting:      g.waiting,
		View:         o.view,
		Ledger:       o.ledger,
		Gang:         o.answer.Gang,
		Accelerators: p.accelerators,
		Holds:        o.asked.holds,
	}
	if o.spared = p.spares(g, o, asked); o.spared == "" || len(g.running) == 0 {
		return
	}
	if choice, ok := victims.Move(o.outside(asked), o.view.Ledger(p.heldFor(g.key)), p.groups); ok {
		o.choice, o.moves = &choice, true
		o.answer.Gang.Members = slices.Clone(o.answer.Gang.Members)
		for i := range o.answer.Gang.Members {
			o.answer.Gang.Members[i].Placed, o.answer.Gang.Members[i].Node = false, 0
		}
	}
}

// spares says why nobody leaves for a gang; "" if somebody does, or if it is not kept waiting by what runs.
func (p *play) spares(g *gang, o *outcome, asked unplaced.Gang) string {
	if never(g) {
		return "its preemptionPolicy is Never"
	}
	if !p.lower(g.order.Priority) && o.asked.questions[0].Note() == "" {
		return "nothing that runs has a lower priority"
	}
	if !asked.Runs() {
		asked = o.outside(asked)
	}
	choice, short, err := victims.Choose(asked, p.groups, p.objects.Budgets, p.now)
	switch {
	case err != nil:
		return err.Error()
	case short != nil:
		return "nobody whose departure would help has a lower priority"
	case slices.ContainsFunc(choice.Victims, func(u snapshot.Unit) bool { return u.Domain == "" }):
		o.choice = &choice // else it waits for ComputeDomains that leave by themselves
	}
	return ""
}

// outside is the gang as it may not use what is kept for the one that is before it.
func (o outcome) outside(asked unplaced.Gang) unplaced.Gang {
	if o.head == nil {
		return asked
	}
	return asked.Outside(o.head.rooms, o.head.gang.key.String())
}

// never reports whether the gang may end nobody.
func never(g *gang) bool {
	return ptr.Deref(g.waiting[0].Spec.PreemptionPolicy, corev1.PreemptLowerPriority) == corev1.PreemptNever
}

// apply puts the gang on the stage if it starts. Whoever it preempts leaves; gangs among them wait again, in their order.
func (p *play) apply(ctx context.Context, g *gang, o outcome) error {
	if !o.starts() {
		return nil
	}
	answer := o.answer
	if o.choice != nil {
		if p.head != nil && p.head.gang == g {
			p.head = nil
		}
		for _, u := range o.choice.Victims {
			if err := p.leave(u); err != nil {
				return err
			}
		}
		answer = decision.Answer{Gang: answer.Gang, Placement: o.choice.Placement}
	}
	if o.moves {
		p.queue = slices.DeleteFunc(p.queue, func(other *gang) bool { return other.key == g.key })
		g = g.restarted()
	}
	return p.settle(ctx, g, o.view, answer)
}

// leave takes a unit off the stage. A gang of our scheduler's starts again in its turn.
func (p *play) leave(u snapshot.Unit) error {
	if err := p.take(u.Pods); err != nil {
		return err
	}
	if u.Group == nil {
		return nil
	}
	key := types.NamespacedName{Namespace: u.Group.Namespace, Name: u.Group.Name}
	delete(p.held, key)
	again := newGang(u.Group)
	if known := p.gangs[key]; known != nil {
		again = known.restarted()
	}
	p.queue = slices.DeleteFunc(p.queue, func(g *gang) bool { return g.key == key })
	if again.complete() && again.scheduler() == p.profile.Scheduler {
		p.queue = append(p.queue, again)
		slices.SortFunc(p.queue, byOrder)
	}
	return nil
}
