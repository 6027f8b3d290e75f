package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// SelectionError is a selection of nodes that selects nothing, or more than one thing.
type SelectionError struct {
	// Word is the given selector.
	Word string
	// What describes the fault.
	What string
	// Known are the names that could have been meant, in the fleet's order; Of is their kind.
	Known []string
	Of    string
}

// Error says it in one line.
func (e *SelectionError) Error() string { return e.Word + ": " + e.What }

// selected are the tree numbers of the nodes that words select, in tree order: nodes by name, or whole domains as
// LEVEL=NAME, where the level is given by its name or its label key, and the domain by its label value or its path.
func selected(view snapshot.View, words []string) ([]int, error) {
	var all []int
	for _, word := range words {
		nodes, err := selectedBy(view, word)
		if err != nil {
			return nil, err
		}
		all = append(all, nodes...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func selectedBy(view snapshot.View, word string) ([]int, error) {
	levelName, value, isDomain := strings.Cut(word, "=")
	if !isDomain {
		if at, ok := view.Tree.Index(word); ok {
			return []int{at}, nil
		}
		return nil, &SelectionError{
			Word:  word,
			What:  "there is no node of that name",
			Known: nodesOf(view),
			Of:    "nodes",
		}
	}
	level, ok := view.Tree.Level(levelName)
	levels := view.Tree.Levels()
	if !ok || level >= len(levels) {
		fault := &SelectionError{Word: word, What: fmt.Sprintf("the fleet has no level %q", levelName), Of: "levels"}
		for _, l := range levels {
			fault.Known = append(fault.Known, l.Name)
		}
		return nil, fault
	}
	found := make(map[string][]int)
	var paths, every []string
	for at, info := range view.Infos {
		domain, in := view.Tree.Domain(at, level)
		if info == nil || !in {
			continue
		}
		path := domain.String()
		if !slices.Contains(every, path) {
			every = append(every, path)
		}
		if path != value && domain.Path[len(domain.Path)-1] != value {
			continue
		}
		if found[path] == nil {
			paths = append(paths, path)
		}
		found[path] = append(found[path], at)
	}
	name := levels[level].Name
	switch {
	case found[value] != nil:
		return found[value], nil
	case len(paths) == 1:
		return found[paths[0]], nil
	case len(paths) > 1:
		return nil, &SelectionError{
			Word:  word,
			What:  fmt.Sprintf("there are %d domains of that name", len(paths)),
			Known: paths,
			Of:    name + " paths",
		}
	}
	return nil, &SelectionError{Word: word, What: "there is no such " + name, Known: every, Of: name + " domains"}
}

func nodesOf(view snapshot.View) []string {
	var names []string
	for at, info := range view.Infos {
		if info != nil {
			names = append(names, view.Tree.Node(at))
		}
	}
	return names
}
