package dra

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/lockstep-project/lockstep/topology"
)

// Choice is one way to serve claims that all members of a gang share: there is one allocation for all of them, so all
// must be on nodes that reach it.
type Choice struct {
	// At is the first node for which the allocator makes this choice.
	At string
	// Nodes are those that reach the devices, in order of their names.
	Nodes []string
	// Each is set if each of the nodes serves the claims with devices of its own: all members go to one of them.
	Each bool
}

// Choices returns the different choices that the allocator makes for shared claims, read as one demand and evaluated at
// one node of each class, and the rules for which nodes have none. Nodes that serve the claims with devices of their
// own are one choice, the last one. The error is that of the context.
func (f *Fitter) Choices(ctx context.Context, fleet Fleet, shared *Demand) ([]Choice, []topology.Rule, error) {
	s := survey{
		f: f, fleet: fleet, demand: shared,
		local: map[nodeClass]bool{}, asked: map[string]bool{}, made: map[string]bool{}, rules: map[string]int{},
	}
	for _, node := range fleet.Inventory.Nodes() {
		if err := s.ask(ctx, node); err != nil {
			return nil, nil, err
		}
	}
	rules := make([]topology.Rule, 0, len(s.rules))
	for _, rule := range sortedKeys(s.rules) {
		rules = append(rules, topology.Rule{Rule: rule, Nodes: s.rules[rule]})
	}
	slices.SortStableFunc(rules, func(a, b topology.Rule) int { return cmp.Compare(b.Nodes, a.Nodes) })
	choices := s.choices
	if len(s.own) > 0 {
		choices = append(choices, Choice{At: s.own[0], Nodes: s.own, Each: true})
	}
	return choices, rules, nil
}

// survey visits the nodes one after another.
type survey struct {
	f      *Fitter
	fleet  Fleet
	demand *Demand
	// local are node classes whose nodes serve the claims with devices of their own.
	local map[nodeClass]bool
	// asked are node classes together with the pools that reach several nodes; made are choices, by their devices.
	asked, made map[string]bool
	rules       map[string]int
	choices     []Choice
	// own are the nodes of local classes.
	own []string
}

func (s *survey) ask(ctx context.Context, node string) error {
	fit, err := s.f.Fit(ctx, s.fleet, node, s.demand)
	if err != nil {
		return err
	}
	if fit.Pods == 0 {
		s.rules[fit.Rule]++
		return nil
	}
	v := s.fleet.Inventory.view(node)
	d := s.demand.on(v.node)
	if len(d.Claims) == 0 {
		return nil
	}
	c := s.f.classOf(v, s.fleet.Ledger, d.lens)
	if s.local[c] {
		s.own = append(s.own, node)
		return nil
	}
	identity := v.identity(c)
	if s.asked[identity] {
		return nil // the same devices would be chosen
	}
	s.asked[identity] = true
	confirmed, err := s.f.Confirm(ctx, Fleet{s.fleet.Inventory, s.fleet.Ledger.Branch()}, node, d)
	if err != nil || len(confirmed.Pods) == 0 {
		return err
	}
	return s.choose(node, c, confirmed.Pods[0])
}

// choose adds the allocator's result.
func (s *survey) choose(node string, c nodeClass, given []Given) error {
	var devices strings.Builder
	selectors := make([]*corev1.NodeSelector, 0, len(given))
	for _, g := range given {
		for _, r := range g.Allocation.Devices.Results {
			fmt.Fprintf(&devices, "%s %s/%s/%s\n", r.Request, r.Driver, r.Pool, r.Device)
		}
		if g.Allocation.NodeSelector != nil {
			selectors = append(selectors, g.Allocation.NodeSelector)
		}
	}
	if slices.ContainsFunc(selectors, pins) {
		s.local[c] = true
		s.own = append(s.own, node)
		return nil
	}
	if s.made[devices.String()] {
		return nil
	}
	s.made[devices.String()] = true
	nodes, err := s.fleet.Inventory.Matching(selectors...)
	if err != nil {
		return err
	}
	s.choices = append(s.choices, Choice{At: node, Nodes: nodes})
	return nil
}

// pins reports whether a selector names its node.
func pins(s *corev1.NodeSelector) bool {
	return slices.ContainsFunc(
		s.NodeSelectorTerms,
		func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 },
	)
}

// identity distinguishes nodes of one class that share different devices with other nodes.
func (v *view) identity(c nodeClass) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d", c)
	for _, p := range v.parts {
		if p.wide {
			fmt.Fprintf(&text, " %s %v", p.id, p.some)
		}
	}
	return text.String()
}

// Matching returns the nodes that all selectors match, in order of their names: the nodes that a pod with allocated
// claims can use. A selector that cannot be parsed is an error.
func (inv *Inventory) Matching(selectors ...*corev1.NodeSelector) ([]string, error) {
	parsed := make([]*nodeaffinity.NodeSelector, 0, len(selectors))
	for _, s := range selectors {
		p, err := nodeaffinity.NewNodeSelector(s)
		if err != nil {
			return nil, fmt.Errorf("read the node selector of an allocation: %w", err)
		}
		parsed = append(parsed, p)
	}
	var all []string
	for _, name := range inv.Nodes() {
		fails := func(s *nodeaffinity.NodeSelector) bool { return !s.Match(inv.nodes[name]) }
		if !slices.ContainsFunc(parsed, fails) {
			all = append(all, name)
		}
	}
	return all, nil
}
