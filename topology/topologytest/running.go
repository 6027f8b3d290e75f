package topologytest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// term holds a script's terms of a running gang: the cost of its eviction and its end.
type term struct{ worth, end int64 }

// waiting is the reservation that admit respects, and its gang.
type waiting struct {
	head        topology.Gang
	reservation topology.Reservation
}

// set reads gang=number for one of the two terms.
func (s *Script) set(args []Arg, change func(t *term, n int64)) (string, error) {
	for _, a := range args {
		n, err := strconv.ParseInt(a.Value, 10, 64)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", a.Key, err)
		}
		t := s.term(a.Key)
		change(&t, n)
		s.terms[a.Key] = t
	}
	return "ok", nil
}

func (s *Script) worth(args []Arg) (string, error) {
	return s.set(args, func(t *term, n int64) { t.worth = n })
}

func (s *Script) ends(args []Arg) (string, error) {
	return s.set(args, func(t *term, n int64) { t.end = n })
}

// term returns the terms of the gang; without any it is worth its members and never ends.
func (s *Script) term(name string) term {
	if t, ok := s.terms[name]; ok {
		return t
	}
	return term{int64(len(s.gangs[name].nodes)), topology.EndUnknown}
}

// running returns the gangs that run, by name.
func (s *Script) running(l topology.Ledger) []topology.Running {
	var running []topology.Running
	for _, name := range slices.Sorted(maps.Keys(s.gangs)) {
		t := s.term(name)
		r := topology.Running{Name: name, Cost: t.worth, End: t.end}
		for i, node := range s.gangs[name].nodes {
			at, _ := l.Tree.Index(node)
			r.Holds = append(r.Holds, topology.Held{Node: at, Demand: s.gangs[name].demands[i]})
		}
		running = append(running, r)
	}
	return running
}

func (s *Script) evict(args []Arg) (string, error) {
	g, err := s.gang(args)
	if err != nil {
		return "", err
	}
	l := s.ledger()
	running := s.running(l)
	e, short, err := topology.Evict(l, g, running)
	if err != nil || short != nil {
		return refused(g, short, err), nil
	}
	var names []string
	for _, v := range e.Victims {
		names = append(names, running[v].Name)
	}
	text := "no gang leaves"
	if len(names) > 0 {
		text = fmt.Sprintf("without %s, cost %d", strings.Join(names, " and "), e.Cost)
	}
	if !e.Optimal() {
		text += fmt.Sprintf(" (at least %d)", e.Bound)
	}
	return text + ":\n" + s.planned(l, g, e.Placement), nil
}

func (s *Script) reserve(args []Arg) (string, error) {
	g, err := s.gang(args)
	if err != nil {
		return "", err
	}
	l := s.ledger()
	r, short, err := topology.Reserve(l, g, s.running(l))
	if err != nil || short != nil {
		return refused(g, short, err), nil
	}
	s.waiting = &waiting{g, r}
	when := "now"
	if r.At != topology.Now {
		when = "at " + strconv.FormatInt(r.At, 10)
	}
	return when + ":\n" + s.planned(l, g, r.Placement), nil
}

// admit places a gang that ends at the given time if it does not delay the one that reserved.
func (s *Script) admit(args []Arg) (string, error) {
	if s.waiting == nil {
		return "", errors.New("nothing is reserved")
	}
	at := slices.IndexFunc(args, func(a Arg) bool { return a.Key == "until" })
	end := int64(topology.EndUnknown)
	if at >= 0 {
		var err error
		if end, err = strconv.ParseInt(args[at].Value, 10, 64); err != nil {
			return "", fmt.Errorf("reading until: %w", err)
		}
		args = slices.Delete(slices.Clone(args), at, at+1)
	}
	g, err := s.gang(args)
	if err != nil {
		return "", err
	}
	l := s.ledger()
	p, short, err := s.waiting.reservation.Admit(l, s.running(l), s.waiting.head, g, end)
	if err != nil || short != nil {
		return refused(g, short, err), nil
	}
	return s.took(l, g, p), nil
}

// planned prints the placement that a gang would have.
func (s *Script) planned(l topology.Ledger, g topology.Gang, p topology.Placement) string {
	names := make([]string, len(p.Nodes))
	for i, n := range p.Nodes {
		names[i] = l.Tree.Node(n)
	}
	return s.summary(g, p) + s.ranks(p, names)
}
