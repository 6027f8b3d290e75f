package topologytest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// Script runs the commands of a test script one after another. The zero Script is ready.
//
//	fleet block=2 rack=3 host=4 gpu=8 a regular fleet: levels outermost first, hosts, then a host's resources
//	node x1 rack=r9 gpu=4               one more node; labels that are not given are missing
//	unlabel rack b1/r2 …                take a level's label from nodes
//	hold b1/r1 gpu=2                    take resources on nodes; everything if none is given
//	bar rule=taint b1/r1 …              bar members from nodes; `bar` alone lifts all bars
//	label rack=r7 b1/r2 …               give nodes another label
//	weight rack=50 …                    the cost of crossing a level; it is 100 otherwise
//	accelerator clique                  make a level an accelerator's: values count, not paths
//	place t worker=3 gpu=4 require=rack place a gang; each role=count begins a shape, resources follow. Rules:
//	                                    require prefer segment+in+equal spread+over spares+per cap talk min
//	repair t b1-r1-h1 …                 lose nodes, and replace the members of the gang that were there
//	drop t                              give back what a gang holds
//	worth t=5 …    ends t=30 …          the cost of evicting gangs, their number of members by default; their ends
//	evict u worker=3 …                  the gangs that would have to leave for a gang
//	reserve u worker=3 …                when there is room for a gang; later
//	admit v worker=2 … until=20         places another one if that does not delay it
//	picture                             show all nodes
//
// Nodes are given by name or by the path of a domain. An underscore in a rule stands for a space. A picture shows each
// unit of the first resource: a dot is free, # is held, a letter is the gang whose name begins with it.
type Script struct {
	levels    []topology.Level
	resources []string
	nodes     []topology.Node
	free      map[string]topology.Capacity
	total     map[string]topology.Capacity
	rules     map[string]string
	// drawn is the first resource of each node as the picture shows it.
	drawn map[string]string
	gangs map[string]placedGang
	terms map[string]term
	// waiting is the gang that reserved last.
	waiting *waiting
}

// Arg is one argument of a command: a word, or a key with a value.
type Arg struct{ Key, Value string }

// Do runs one command and returns its output.
func (s *Script) Do(command string, args []Arg) (string, error) {
	commands := map[string]func([]Arg) (string, error){
		"fleet":       s.fleet,
		"node":        s.node,
		"unlabel":     s.unlabel,
		"hold":        s.hold,
		"bar":         s.bar,
		"label":       s.label,
		"weight":      s.weight,
		"accelerator": s.accelerator,
		"place":       s.place,
		"repair":      s.repair,
		"drop":        s.drop,
		"worth":       s.worth, "ends": s.ends, "evict": s.evict, "reserve": s.reserve, "admit": s.admit,
		"picture": func([]Arg) (string, error) { return s.picture(nil), nil },
	}
	run, ok := commands[command]
	if !ok {
		return "", fmt.Errorf("unknown command %s", command)
	}
	return run(args)
}

func (s *Script) fleet(args []Arg) (string, error) {
	*s = Script{
		free: map[string]topology.Capacity{}, total: map[string]topology.Capacity{}, rules: map[string]string{},
		drawn: map[string]string{}, gangs: map[string]placedGang{}, terms: map[string]term{},
	}
	hosts := slices.IndexFunc(args, func(a Arg) bool { return a.Key == "host" })
	if hosts < 0 {
		return "", errors.New("a fleet needs host=n")
	}
	var has topology.Capacity
	for _, a := range args[hosts+1:] {
		n, err := strconv.ParseInt(a.Value, 10, 64)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", a.Key, err)
		}
		s.resources = append(s.resources, a.Key)
		has = append(has, n)
	}
	paths := [][]string{nil}
	for _, a := range args[:hosts+1] {
		n, err := strconv.Atoi(a.Value)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", a.Key, err)
		}
		paths = branch(paths, a.Key[:1], n)
		if a.Key != "host" {
			s.levels = append(s.levels, levelNamed(a.Key))
		}
	}
	for _, path := range paths {
		labels := map[string]string{}
		for l, level := range s.levels {
			labels[level.Key] = path[l]
		}
		s.add(strings.Join(path, "-"), labels, has)
	}
	return fmt.Sprintf("%d nodes", len(s.nodes)), nil
}

// branch gives every path n children.
func branch(paths [][]string, prefix string, n int) [][]string {
	var longer [][]string
	for _, p := range paths {
		for i := range n {
			longer = append(longer, append(slices.Clone(p), fmt.Sprintf("%s%d", prefix, i+1)))
		}
	}
	return longer
}

// levelNamed is the known level of that name, or one made up. Every level weighs the same, and none is an
// accelerator's.
func levelNamed(name string) topology.Level {
	for _, l := range topology.KnownLevels() {
		if l.Name == name {
			return topology.Level{Name: l.Name, Key: l.Key}
		}
	}
	return topology.Level{Name: name, Key: "test/" + name}
}

func (s *Script) add(name string, labels map[string]string, has topology.Capacity) {
	s.nodes = append(s.nodes, topology.Node{Name: name, Labels: labels})
	s.free[name], s.total[name] = slices.Clone(has), slices.Clone(has)
	s.drawn[name] = strings.Repeat(".", int(has[0]))
}

func (s *Script) node(args []Arg) (string, error) {
	labels := map[string]string{}
	for _, l := range s.levels {
		for _, a := range args[1:] {
			if a.Key == l.Name {
				labels[l.Key] = a.Value
			}
		}
	}
	has, err := s.capacity(args[1:])
	if err == nil {
		s.add(args[0].Key, labels, has)
	}
	return "ok", err
}

// capacity reads the resources among the arguments.
func (s *Script) capacity(args []Arg) (topology.Capacity, error) {
	c := make(topology.Capacity, len(s.resources))
	for _, a := range args {
		if r := slices.Index(s.resources, a.Key); r >= 0 {
			n, err := strconv.ParseInt(a.Value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", a.Key, err)
			}
			c[r] = n
		}
	}
	return c, nil
}

// named returns the nodes that the bare arguments name, or lie in the domains that they name.
func (s *Script) named(args []Arg) ([]string, error) {
	t := s.tree()
	var found []string
	for _, a := range args {
		if a.Value != "" {
			continue
		}
		before := len(found)
		for i := range t.Len() {
			in := t.Node(i) == a.Key
			for l := range s.levels {
				d, ok := t.Domain(i, l)
				in = in || ok && d.String() == a.Key
			}
			if in {
				found = append(found, t.Node(i))
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("no node or domain %s", a.Key)
		}
	}
	return found, nil
}

func (s *Script) unlabel(args []Arg) (string, error) {
	found, err := s.named(args[1:])
	for _, n := range s.nodes {
		if slices.Contains(found, n.Name) {
			delete(n.Labels, levelNamed(args[0].Key).Key)
		}
	}
	return "ok", err
}

func (s *Script) label(args []Arg) (string, error) {
	found, err := s.named(args[1:])
	for _, n := range s.nodes {
		if slices.Contains(found, n.Name) {
			n.Labels[levelNamed(args[0].Key).Key] = args[0].Value
		}
	}
	return "ok", err
}

func (s *Script) weight(args []Arg) (string, error) {
	for _, a := range args {
		for i, l := range s.levels {
			if l.Name != a.Key {
				continue
			}
			w, err := strconv.ParseInt(a.Value, 10, 64)
			if err != nil {
				return "", fmt.Errorf("reading %s: %w", a.Key, err)
			}
			s.levels[i].Weight = w
		}
	}
	return "ok", nil
}

func (s *Script) accelerator(args []Arg) (string, error) {
	for i, l := range s.levels {
		s.levels[i].Accelerator = l.Accelerator || l.Name == args[0].Key
	}
	return "ok", nil
}

func (s *Script) hold(args []Arg) (string, error) {
	found, err := s.named(args)
	if err != nil {
		return "", err
	}
	demand, err := s.capacity(args)
	for _, name := range found {
		d := demand
		if !slices.ContainsFunc(demand, func(n int64) bool { return n > 0 }) {
			d = s.free[name]
		}
		s.take(name, d, "#")
	}
	return "ok", err
}

func (s *Script) bar(args []Arg) (string, error) {
	if len(args) == 0 {
		clear(s.rules)
		return "ok", nil
	}
	found, err := s.named(args[1:])
	for _, name := range found {
		s.rules[name] = strings.ReplaceAll(args[0].Value, "_", " ")
	}
	return "ok", err
}

// take subtracts the demand from the node and draws it.
func (s *Script) take(name string, demand topology.Capacity, letter string) {
	s.drawn[name] = strings.Replace(s.drawn[name], ".", letter, int(demand[0]))
	left := slices.Clone(s.free[name])
	for r, d := range demand {
		left[r] -= d
	}
	s.free[name] = left
}
