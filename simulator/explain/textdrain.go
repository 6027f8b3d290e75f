package explain

import (
	"fmt"
)

func (t *text) drain(d Drain) {
	t.line(0, "%s", d.Answer)
	t.line(1, "nodes: %s", someNodes(d.Nodes))
	t.line(1, "lost: %g accelerator-hours of work since it was saved or began", d.LostHours)
	t.exceeded(d.Exceeded)
	for _, m := range d.Moves {
		t.move(m)
	}
	if d.Stay > 0 {
		t.line(1, "not counted: %s of DaemonSets, or static", count(d.Stay, "pod"))
	}
}

func (t *text) move(m Move) {
	if m.Pod {
		t.movePod(m)
		return
	}
	ends := fmt.Sprintf("all %d start again", len(m.Ends))
	if m.Then.Running > 0 {
		ends = fmt.Sprintf("%d of %d are replaced", len(m.Ends), m.Then.Members)
	}
	t.line(
		1,
		"%s has %s on them: %s, and lose %g accelerator-hours",
		m.Name,
		count(len(m.Drained), "member"),
		ends,
		m.LostHours,
	)
	t.depth = 2
	defer func() { t.depth = 0 }()
	switch where := m.Then.Where; {
	case m.Then.Preemption != nil:
		t.line(0, "then %s", m.Then.Answer)
		t.preemption(*m.Then.Preemption)
	case m.Then.Starts && where != nil:
		moved := planned(*where)
		t.line(0, "then on %s", place(moved))
		t.depth = 1
		t.places(moved)
	default:
		t.line(0, "then %s", m.Then.Answer)
		t.evidence(m.Then)
	}
}

func (t *text) movePod(m Move) {
	switch {
	case m.Forever:
		t.line(1, "pod %s ends for good: no controller creates it again", m.Name)
	case m.Then.Starts:
		t.line(1, "pod %s: there is room for it, on %s for example", m.Name, m.Then.Where.Ranks[0].Node)
	default:
		t.line(1, "pod %s finds no room", m.Name)
		t.depth = 1
		t.evidence(m.Then)
		t.depth = 0
	}
}
