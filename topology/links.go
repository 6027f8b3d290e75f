package topology

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Link is a domain that names the domain around it: a switch of Slurm's topology.conf, a HyperNode of Volcano. A fleet
// is one forest of links per hierarchy; all names in it are different.
type Link struct {
	Name string
	// Level is a name or a label key.
	Level string
	// Parent is the domain around this one, further out by one level or several; "" if there is none.
	Parent string
}

// Attached is a node and the domains that it is directly in: one, or one of each hierarchy (a switch and an NVLink
// block), or none.
type Attached struct {
	Node
	Domains []string
}

// Unfold turns explicit parents into labels: it returns the nodes as NewTree takes them, in the order given, each with
// the names of the domains around it as the values of the levels' labels. The label of a level that links describe is
// theirs alone, and missing where a chain of parents leaps over it; all other labels of the node stay.
//
// An error is an InputError that names one fault: of the names and levels, then the parents, cycles, order, and nodes.
func Unfold(levels []Level, links []Link, nodes []Attached) ([]Node, error) {
	f, err := newForest(levels, links)
	if err != nil {
		return nil, err
	}
	unfolded := make([]Node, len(nodes))
	seen := make(map[string]bool, len(nodes))
	for i, n := range nodes {
		if n.Name == "" {
			return nil, linkError("node number "+strconv.Itoa(i+1)+" without a name", ErrNode)
		}
		if seen[n.Name] {
			return nil, linkError("node "+n.Name, ErrDuplicate)
		}
		seen[n.Name] = true
		if unfolded[i], err = f.label(n); err != nil {
			return nil, err
		}
	}
	return unfolded, nil
}

func linkError(what string, cause error) *InputError {
	return &InputError{Of: "links", What: what, Cause: cause}
}

// forest is links that are known to be right.
type forest struct {
	levels []Level
	links  []Link
	// at and parents are the positions of each link's level and parent, -1 for no parent.
	at, parents []int
	byName      map[string]int
	// described is which levels have a link.
	described []bool
}

func newForest(levels []Level, links []Link) (*forest, error) {
	f := &forest{
		levels:    levels,
		links:     links,
		at:        make([]int, len(links)),
		parents:   make([]int, len(links)),
		byName:    make(map[string]int, len(links)),
		described: make([]bool, len(levels)),
	}
	for i, l := range links {
		if err := f.add(i, l); err != nil {
			return nil, err
		}
	}
	for i, l := range links {
		parent, ok := f.byName[l.Parent]
		switch {
		case l.Parent == "":
			parent = -1
		case !ok:
			return nil, linkError("parent "+l.Parent+" of "+l.Name, ErrDomain)
		}
		f.parents[i] = parent
	}
	if err := f.checkCycles(); err != nil {
		return nil, err
	}
	for i, parent := range f.parents {
		if parent >= 0 && f.at[parent] >= f.at[i] {
			err := linkError("parent "+f.describe(parent)+" of "+f.describe(i), ErrOrder)
			err.Hint = knownLevels(levels) + ", outermost first"
			return nil, err
		}
	}
	return f, nil
}

// add takes a link by itself: its name and its level.
func (f *forest) add(i int, l Link) error {
	if l.Name == "" {
		return linkError("domain number "+strconv.Itoa(i+1)+" without a name", ErrDomain)
	}
	if _, ok := f.byName[l.Name]; ok {
		return linkError("domain "+l.Name, ErrDuplicate)
	}
	f.byName[l.Name] = i
	if l.Level == "" {
		return linkError("domain "+l.Name, ErrNoLevel)
	}
	f.at[i] = slices.IndexFunc(f.levels, func(o Level) bool { return o.Name == l.Level })
	if f.at[i] < 0 {
		f.at[i] = slices.IndexFunc(f.levels, func(o Level) bool { return o.Key == l.Level })
	}
	if f.at[i] < 0 {
		err := linkError("level "+l.Level+" of "+l.Name, ErrLevel)
		err.Hint = knownLevels(f.levels)
		return err
	}
	f.described[f.at[i]] = true
	return nil
}

// checkCycles follows every chain of parents once.
func (f *forest) checkCycles() error {
	// walk is the number of the walk that first reached a link.
	walk := make([]int, len(f.links))
	for i := range f.links {
		v := i
		for ; v >= 0 && walk[v] == 0; v = f.parents[v] {
			walk[v] = i + 1
		}
		if v >= 0 && walk[v] == i+1 {
			return f.cycle(v)
		}
	}
	return nil
}

// cycle names the domains of the cycle that the link is on, from the first of them in the order of the links.
func (f *forest) cycle(v int) error {
	first := v
	for u := f.parents[v]; u != v; u = f.parents[u] {
		first = min(first, u)
	}
	path := []string{f.links[first].Name}
	for u := f.parents[first]; u != first; u = f.parents[u] {
		path = append(path, f.links[u].Name)
	}
	path = append(path, f.links[first].Name)
	return linkError("domain "+strings.Join(path, " in "), ErrCycle)
}

func (f *forest) describe(link int) string {
	l := f.levels[f.at[link]]
	return f.links[link].Name + " (" + cmp.Or(l.Name, l.Key) + ")"
}

// label gives a node the labels of the domains around it.
func (f *forest) label(n Attached) (Node, error) {
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = make(map[string]string, len(f.levels))
	}
	within := make([]string, len(f.levels))
	for _, name := range n.Domains {
		v, ok := f.byName[name]
		if !ok {
			return Node{}, linkError("domain "+strconv.Quote(name)+" of node "+n.Name, ErrDomain)
		}
		for ; v >= 0; v = f.parents[v] {
			l := f.at[v]
			if other := within[l]; other != "" && other != f.links[v].Name {
				err := linkError("node "+n.Name+" in "+other+" and in "+f.describe(v), ErrDuplicate)
				err.Hint = "a node is in one domain of a level"
				return Node{}, err
			}
			within[l] = f.links[v].Name
		}
	}
	for l, name := range within {
		switch {
		case name != "":
			labels[f.levels[l].Key] = name
		case f.described[l]:
			delete(labels, f.levels[l].Key)
		}
	}
	return Node{Name: n.Name, Labels: labels}, nil
}
