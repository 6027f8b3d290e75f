// Package snapshot turns the scheduler's snapshot into topology values: nodes into a tree with free capacity, a
// PodGroup's waiting pods into a gang. It is the only place in the scheduler that reads node labels.
package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/topology"
)

// View is the fleet as one cycle sees it. All slices are by tree number. It is valid until the next call to Update of
// its Index.
type View struct {
	Tree *topology.Tree
	// Free is the room left on nodes, Total their room if they were empty. Both are nil where there is no node.
	Free, Total []topology.Capacity
	// Infos are the snapshot's own pointers: a placement must consist of these. Nil where there is no node.
	Infos []fwk.NodeInfo
	// health defines the marks that close a node, marks holds them by node: nil for one that is open.
	health nodehealth.Rules
	marks  []*nodehealth.Mark
	// restricted counts the nodes that not every pod may use.
	restricted int
	resources  []corev1.ResourceName
	// bars are the answers of earlier cycles about the nodes that pods may use.
	bars bars
	// ledger is the same for decisions, with the counts of earlier ones.
	ledger topology.Ledger
	// running holds the units on the nodes.
	running *running
	// lineups are the gangs of the last questions.
	lineups *lineups
	// found names, for users, the label families that the nodes carry; empty if the levels are configured.
	found string
}

// Resources are those of the view's capacities, in their order. The caller must not change them.
func (v View) Resources() []corev1.ResourceName { return v.resources }

// Ledger is the view as decisions take it, without the room that is held on nodes for others.
func (v View) Ledger(held map[string]corev1.ResourceList) topology.Ledger {
	if len(held) == 0 {
		return v.ledger
	}
	free, nodes := slices.Clone(v.Free), make([]int, 0, len(held))
	for name, room := range held {
		if at, ok := v.Tree.Index(name); ok {
			free[at], nodes = less(free[at], demand(room, v.resources)), append(nodes, at)
		}
	}
	slices.Sort(nodes)
	return v.ledger.Differing(free, nodes)
}

// Index retains the values of the last cycle and reads only nodes whose generation changed. It is not safe for
// concurrent use: the scheduling loop is its only caller.
type Index struct {
	// levels are configured, nil if they are to be detected.
	levels []topology.Level
	// outermost is the key of a level put on top of these, "" for none.
	outermost string
	// discovered are the labels for NVLink domains that say nothing here: see topology.WithClique.
	discovered map[string]bool
	slots      []slot
	view       View
	// book is the room left on the view's nodes: counts made for one question are available to the next.
	book *topology.Book
	// stale are the positions of nodes that changed, as of the last update.
	stale []int
}

// slot is one position of the node list.
type slot struct {
	info       fwk.NodeInfo
	node       *corev1.Node
	generation int64
	tree       int
	restricted bool
	mark       *nodehealth.Mark
	// tenants are its pods.
	tenants []*tenant
}

// NewIndex makes an empty index of the levels, nil for those that nodes carry. A non-empty key becomes the outermost
// level, where two nodes share a domain whenever their values are equal: the meaning of a Kubernetes topology key.
// health defines the marks that close a node.
func NewIndex(levels []topology.Level, outermost string, health nodehealth.Rules) *Index {
	return &Index{levels: levels, outermost: outermost, view: View{
		resources: firstResources(), health: health, lineups: &lineups{},
	}}
}

// Update brings the index to the given node list and makes sure that the resources are among those counted.
func (ix *Index) Update(nodes []fwk.NodeInfo, resources []corev1.ResourceName) (View, error) {
	grown := ix.grow(resources)
	if ix.view.Tree == nil || !ix.sameTree(nodes) && !ix.patch(nodes) {
		err := ix.rebuild(nodes)
		return ix.view, err
	}
	if grown {
		ix.forgetDemands()
		ix.stale = ix.stale[:0]
		for i := range ix.slots {
			ix.slots[i].node, ix.stale = nil, append(ix.stale, i) // its totals have to be read again
		}
	}
	for _, i := range ix.stale {
		ix.refresh(&ix.slots[i], nodes[i])
	}
	return ix.view, nil
}

// forgetDemands has the demands of pods computed anew: capacities have other entries now.
func (ix *Index) forgetDemands() {
	for i := range ix.slots {
		for _, t := range ix.slots[i].tenants {
			t.demand = nil
		}
	}
	for _, m := range ix.view.running.groups {
		m.built = false
	}
}

// grow adds resources that no gang asked for before.
func (ix *Index) grow(resources []corev1.ResourceName) bool {
	grown := false
	for _, r := range resources {
		if slices.Contains(ix.view.resources, r) {
			continue
		}
		all := append(slices.Clone(ix.view.resources), r)
		slices.Sort(all[len(firstResources()):])
		ix.view.resources, grown = all, true
	}
	return grown
}

// sameTree reports whether the list has the same nodes in the same order with the same level labels as before. It finds
// out which of them changed: of the others nothing is read but the generation, which no two states of nodes share.
func (ix *Index) sameTree(nodes []fwk.NodeInfo) bool {
	if len(nodes) != len(ix.slots) {
		return false
	}
	ix.stale = ix.stale[:0]
	for i, info := range nodes {
		s := &ix.slots[i]
		if s.info != info {
			s.info, ix.view.Infos[s.tree] = info, info
		}
		if s.generation != info.GetGeneration() {
			ix.stale = append(ix.stale, i)
		}
	}
	for _, i := range ix.stale {
		old, node := ix.slots[i].node, nodes[i].Node()
		if old != node && (old.Name != node.Name || !ix.sameLevels(old.Labels, node.Labels)) {
			return false
		}
	}
	return true
}

// sameLevels compares only the labels that make levels: others change with every job on some clusters.
func (ix *Index) sameLevels(a, b map[string]string) bool {
	if maps.Equal(a, b) {
		return true
	}
	if ix.outermost != "" && a[ix.outermost] != b[ix.outermost] {
		return false
	}
	a, b = ix.seen("", a).Labels, ix.seen("", b).Labels
	la, lb := ix.levels, ix.levels
	if la == nil {
		la = topology.DetectLevels([]topology.Node{{Labels: a}})
		lb = topology.DetectLevels([]topology.Node{{Labels: b}})
	}
	differs := func(key string) bool { return a[key] != b[key] }
	return slices.Equal(la, lb) &&
		!slices.ContainsFunc(la, func(l topology.Level) bool { return slices.ContainsFunc(l.Keys(), differs) })
}

func (ix *Index) rebuild(infos []fwk.NodeInfo) error {
	nodes := labeled(infos)
	if ix.levels == nil {
		ix.view.found = found(nodes)
	}
	ix.discovered = topology.Discovered(nodes)
	for i, n := range nodes {
		nodes[i] = ix.seen(n.Name, n.Labels)
	}
	levels := slices.Clone(ix.levels)
	if levels == nil {
		levels = topology.DetectLevels(nodes)
	}
	if ix.outermost != "" {
		levels = slices.DeleteFunc(levels, func(l topology.Level) bool { return l.Key == ix.outermost })
		levels = slices.Insert(levels, 0, topology.Level{Name: ix.outermost, Key: ix.outermost})
	}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		return fmt.Errorf("reading the nodes: %w", err)
	}
	ix.adopt(tree, infos, nil)
	return nil
}

// labeled are the nodes with the labels that they carry.
func labeled(infos []fwk.NodeInfo) []topology.Node {
	nodes := make([]topology.Node, len(infos))
	for i, info := range infos {
		nodes[i] = topology.Node{Name: info.Node().Name, Labels: info.Node().Labels}
	}
	return nodes
}

// seen returns a node as the tree takes it: with its NVLink clique under one label, whichever label names it. For
// configured levels that is done only if the clique is among them.
func (ix *Index) seen(name string, labels map[string]string) topology.Node {
	n := topology.Node{Name: name, Labels: labels}
	if ix.levels != nil &&
		!slices.ContainsFunc(ix.levels, func(l topology.Level) bool { return l.Key == topology.LabelClique }) {
		return n
	}
	return topology.WithClique(n, ix.discovered)
}

// adopt takes over a tree of exactly these nodes. The known slots of nodes that stay are given by tree number.
func (ix *Index) adopt(tree *topology.Tree, infos []fwk.NodeInfo, known []*slot) {
	v := &ix.view
	v.Tree, v.bars = tree, newBars()
	free, total := v.Free, v.Total
	v.Free, v.Total = make([]topology.Capacity, tree.Len()), make([]topology.Capacity, tree.Len())
	v.Infos, v.marks = make([]fwk.NodeInfo, tree.Len()), make([]*nodehealth.Mark, tree.Len())
	v.restricted, ix.book, ix.stale = 0, nil, ix.stale[:0]
	v.running = newRunning()
	slots := make([]slot, len(infos))
	for i, info := range infos {
		s := &slots[i]
		s.tree, _ = tree.Index(info.Node().Name)
		v.Infos[s.tree] = info
		if s.tree < len(known) && known[s.tree] != nil {
			*s = *known[s.tree]
			v.Free[s.tree], v.Total[s.tree], v.marks[s.tree] = free[s.tree], total[s.tree], s.mark
			if s.restricted {
				v.restricted++
			}
			v.running.follow(s.tree, nil, s.tenants)
			if s.info = info; s.generation != info.GetGeneration() {
				ix.refresh(s, info)
			}
			continue
		}
		ix.refresh(s, info)
	}
	ix.slots = slots
	ix.book = topology.NewBook(topology.Ledger{Tree: tree, Free: v.Free, Total: v.Total})
	ix.book.Explain()
	v.ledger = ix.book.Ledger()
	v.Free = v.ledger.Free
}

// found lists the label families in one line.
func found(nodes []topology.Node) string {
	families := topology.Families(nodes)
	if len(families) == 0 {
		return "no node carries a known topology label"
	}
	lines := make([]string, len(families))
	for i, f := range families {
		lines[i] = f.String()
	}
	return strings.Join(lines, "; ")
}

// refresh reads a node. Values that depend on its object alone are read only if that changed.
func (ix *Index) refresh(s *slot, info fwk.NodeInfo) {
	node := info.Node()
	if s.node != node {
		s.mark = nil
		if mark, marked := ix.view.health.Of(node); marked {
			s.mark = &mark
		}
		ix.view.marks[s.tree] = s.mark
	}
	if restricted := s.mark != nil || isRestricted(node); restricted != s.restricted {
		s.restricted = restricted
		if restricted {
			ix.view.restricted++
		} else {
			ix.view.restricted--
		}
	}
	if s.node != node {
		if s.node == nil || !sameRules(s.node, node, ix.view.health) {
			ix.view.bars = newBars()
		}
		ix.view.Total[s.tree] = total(info, ix.view.resources)
	}
	s.info, s.node, s.generation = info, node, info.GetGeneration()
	now := tenants(info, s.tenants)
	ix.view.running.follow(s.tree, s.tenants, now)
	s.tenants = now
	left := less(ix.view.Total[s.tree], taken(info, ix.view.resources))
	if ix.book == nil {
		ix.view.Free[s.tree] = left
		return
	}
	ix.book.Put(s.tree, left)
}

// Carries reports whether some node has the label.
func Carries(nodes []fwk.NodeInfo, key string) bool {
	return slices.ContainsFunc(nodes, func(n fwk.NodeInfo) bool { return n.Node().Labels[key] != "" })
}
