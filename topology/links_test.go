package topology_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

func switches() []topology.Level {
	return []topology.Level{
		{Name: "root", Key: "switch/root"},
		{Name: "pod", Key: "switch/pod"},
		{Name: "leaf", Key: "switch/leaf"},
		{Name: "nvl", Key: "block", Accelerator: true},
	}
}

// links reads fields of "name:level:parent".
func links(text string) []topology.Link {
	var links []topology.Link
	for field := range strings.FieldsSeq(text) {
		f := strings.Split(field, ":")
		links = append(links, topology.Link{Name: f[0], Level: f[1], Parent: f[2]})
	}
	return links
}

// attached reads lines of "node domain,domain key=value ...", - for nothing.
func attached(text string) []topology.Attached {
	var nodes []topology.Attached
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		n := topology.Attached{Node: topology.Node{Name: strings.Trim(f[0], "-")}}
		if f[1] != "-" {
			n.Domains = strings.Split(f[1], ",")
		}
		for _, label := range f[2:] {
			if n.Labels == nil {
				n.Labels = make(map[string]string)
			}
			key, value, _ := strings.Cut(label, "=")
			n.Labels[key] = value
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestUnfold(t *testing.T) {
	for name, c := range map[string]struct {
		links, nodes string
		want         []topology.Node
	}{
		"nothing": {"", "", []topology.Node{}},
		"children before their parents": {
			"s1:leaf:p1 p1:pod:root root:root:",
			"n1 s1",
			[]topology.Node{{Name: "n1", Labels: map[string]string{
				"switch/root": "root", "switch/pod": "p1", "switch/leaf": "s1",
			}}},
		},
		"a level by its key, a level leapt over, a node above the leaves, a node in nothing": {
			"root:switch/root: s1:leaf:root p1:pod:root",
			"n1 s1\nn2 p1\nn3 -",
			[]topology.Node{
				{Name: "n1", Labels: map[string]string{"switch/root": "root", "switch/leaf": "s1"}},
				{Name: "n2", Labels: map[string]string{"switch/root": "root", "switch/pod": "p1"}},
				{Name: "n3", Labels: map[string]string{}},
			},
		},
		"two hierarchies, meeting or not": {
			"root:root: s1:leaf:root s2:leaf:root b1:nvl:",
			"n1 s1,b1\nn2 b1,s2\nn3 s1,root",
			[]topology.Node{
				{Name: "n1", Labels: map[string]string{"switch/root": "root", "switch/leaf": "s1", "block": "b1"}},
				{Name: "n2", Labels: map[string]string{"switch/root": "root", "switch/leaf": "s2", "block": "b1"}},
				{Name: "n3", Labels: map[string]string{"switch/root": "root", "switch/leaf": "s1"}},
			},
		},
		"labels stay where no link describes the level": {
			"s1:leaf:",
			"n1 s1 block=b7 switch/leaf=stale gpu=h100\nn2 - switch/leaf=stale",
			[]topology.Node{
				{Name: "n1", Labels: map[string]string{"switch/leaf": "s1", "block": "b7", "gpu": "h100"}},
				{Name: "n2", Labels: map[string]string{}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := attached(c.nodes)
			got, err := topology.Unfold(switches(), links(c.links), nodes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(attached(c.nodes), nodes); diff != "" {
				t.Errorf("the caller's nodes changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnfold_Faults(t *testing.T) {
	for name, c := range map[string]struct {
		links, nodes string
		cause        error
		want         string
	}{
		"domain twice": {
			"s1:leaf: s1:pod:", "", topology.ErrDuplicate,
			"links: domain s1: it is there twice",
		},
		"domain without a name": {
			"s1:leaf: :leaf:", "", topology.ErrDomain,
			"links: domain number 2 without a name: there is no such domain",
		},
		"domain without a level": {
			"s1::", "", topology.ErrNoLevel,
			"links: domain s1: it needs a level",
		},
		"unknown level": {
			"s1:cage:", "", topology.ErrLevel,
			"links: level cage of s1: the tree has no such level; it has root (switch/root), pod (switch/pod), " +
				"leaf (switch/leaf), nvl (block)",
		},
		"unknown parent": {
			"s1:leaf:p1", "", topology.ErrDomain,
			"links: parent p1 of s1: there is no such domain",
		},
		"inside itself": {
			"s1:leaf:s1", "", topology.ErrCycle,
			"links: domain s1 in s1: it is inside itself",
		},
		"inside itself through others": {
			"s1:leaf:p1 s2:leaf:p2 p2:pod:r1 p1:pod:p2 r1:root:p1", "", topology.ErrCycle,
			"links: domain p2 in r1 in p1 in p2: it is inside itself",
		},
		"parent of the same level": {
			"s1:leaf:s2 s2:leaf:", "", topology.ErrOrder,
			"links: parent s2 (leaf) of s1 (leaf): it is not further out than what is inside it; it has root " +
				"(switch/root), pod (switch/pod), leaf (switch/leaf), nvl (block), outermost first",
		},
		"parent:further:in": {
			"p1:pod:s1 s1:leaf:", "", topology.ErrOrder,
			"links: parent s1 (leaf) of p1 (pod): it is not further out than what is inside it; it has root " +
				"(switch/root), pod (switch/pod), leaf (switch/leaf), nvl (block), outermost first",
		},
		"node in an unknown domain": {
			"s1:leaf:", "n1 s1\nn2 s2", topology.ErrDomain,
			`links: domain "s2" of node n2: there is no such domain`,
		},
		"node twice": {
			"s1:leaf:", "n1 s1\nn2 s1\nn1 s1", topology.ErrDuplicate,
			"links: node n1: it is there twice",
		},
		"node without a name": {
			"s1:leaf:", "- s1", topology.ErrNode,
			"links: node number 1 without a name: there is no such node",
		},
		"node in two domains of a level": {
			"p1:pod: p2:pod: s1:leaf:p1 b1:nvl:p2", "n1 s1,b1", topology.ErrDuplicate,
			"links: node n1 in p1 and in p2 (pod): it is there twice; a node is in one domain of a level",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := topology.Unfold(switches(), links(c.links), attached(c.nodes))
			if !errors.Is(err, c.cause) {
				t.Errorf("%v is not caused by %v", err, c.cause)
			}
			if fault := new(topology.InputError); !errors.As(err, &fault) {
				t.Fatalf("%v is not an InputError", err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// Slurm's topology.conf: two leaf switches under a root, two nodes each.
func TestUnfold_MakesATree(t *testing.T) {
	levels := []topology.Level{{Name: "root", Key: "slurm/root"}, {Name: "leaf", Key: "slurm/leaf"}}
	nodes, err := topology.Unfold(levels,
		links("root:root: s1:leaf:root s2:leaf:root"),
		attached("node04 s2\nnode01 s1\nnode03 s2\nnode02 s1"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range tree.Len() {
		d, _ := tree.Domain(i, 1)
		got = append(got, d.String()+"/"+tree.Node(i))
	}
	want := []string{"root/s1/node01", "root/s1/node02", "root/s2/node03", "root/s2/node04"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
