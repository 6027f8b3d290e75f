package nvlink_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// start returns the time of the tests' first look.
func start() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) }

func settings() nvlink.Settings {
	return nvlink.Settings{Quickest: 5 * time.Second, Slowest: 5 * time.Second}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team-a", Name: name}
}

// domain is one with a template and with its UID as the name.
func domain(name string) nvlink.Domain {
	return nvlink.Domain{Key: named(name), UID: types.UID(name), Template: name + "-channel", Held: true, Made: true}
}

// node is a published one in a clique, labeled for a domain or for none.
func node(name string, domain types.UID) nvlink.Node {
	return nvlink.Node{Name: name, Clique: "rack.1", Published: true, Domain: domain}
}

// pod is one with a channel of a domain.
func pod(name, node string, domain types.UID) nvlink.Pod {
	return nvlink.Pod{Key: named(name), Node: node, Domains: []types.UID{domain}, Allocated: true}
}

// script prints actions, one in a line.
func script(actions []nvlink.Action) string {
	var lines []string
	for _, action := range actions {
		line := fmt.Sprintf("%s %s", action.Verb, action.Key.Name)
		if action.Verb == nvlink.Label || action.Verb == nvlink.Unlabel {
			line += " " + string(action.Domain.UID)
		}
		if action.Reason != "" {
			line += ": " + action.Reason
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestDecide_NextStepOfTheDriver(t *testing.T) {
	changed := func(d nvlink.Domain, change func(*nvlink.Domain)) nvlink.Domain { change(&d); return d }
	elsewhere := domain("a")
	elsewhere.Key.Namespace = "team-b"
	for name, test := range map[string]struct {
		state nvlink.State
		want  string
	}{
		"a node in a clique is published": {
			nvlink.State{Nodes: []nvlink.Node{{Name: "n0", Clique: "rack.1"}, {Name: "v0"}}}, "publish n0",
		},
		"one that left its clique is withdrawn": {
			nvlink.State{Nodes: []nvlink.Node{{Name: "n0", Published: true}}}, "withdraw n0",
		},
		"a new domain is held before it has a template": {
			nvlink.State{Domains: []nvlink.Domain{{Key: named("a"), UID: "a", Template: "a-channel"}}}, "hold a",
		},
		"then its template is made": {
			nvlink.State{Domains: []nvlink.Domain{changed(domain("a"), func(d *nvlink.Domain) { d.Made = false })}}, "make a",
		},
		"a pod's node is labeled before the pod starts": {
			nvlink.State{
				Domains: []nvlink.Domain{domain("a")}, Nodes: []nvlink.Node{node("n0", "")}, Pods: []nvlink.Pod{pod("p0", "n0", "a")},
			}, "label n0 a",
		},
		"then the pod starts": {
			nvlink.State{
				Domains: []nvlink.Domain{domain("a")}, Nodes: []nvlink.Node{node("n0", "a")}, Pods: []nvlink.Pod{pod("p0", "n0", "a")},
			}, "prepare p0",
		},
		"a pod whose devices are not seen yet waits": {
			nvlink.State{Nodes: []nvlink.Node{node("n0", "")}, Pods: []nvlink.Pod{{Key: named("p0"), Node: "n0"}}}, "",
		},
		"a pod with other claims starts": {
			nvlink.State{Nodes: []nvlink.Node{{Name: "v0"}}, Pods: []nvlink.Pod{{Key: named("p0"), Node: "v0", Allocated: true}}},
			"prepare p0",
		},
		"a node of another domain's refuses": {
			nvlink.State{
				Domains: []nvlink.Domain{domain("a"), domain("b")}, Nodes: []nvlink.Node{node("n0", "b")},
				Pods: []nvlink.Pod{pod("p0", "n0", "a")},
			},
			"refuse p0: node n0 is labeled for ComputeDomain b already, and its channel is of a",
		},
		"of two domains on one node the first gets it": {
			nvlink.State{
				Domains: []nvlink.Domain{domain("a"), domain("b")}, Nodes: []nvlink.Node{node("n0", "")},
				Pods: []nvlink.Pod{pod("p0", "n0", "a"), pod("p1", "n0", "b")},
			},
			"label n0 a\nrefuse p1: node n0 is labeled for ComputeDomain a already, and its channel is of b",
		},
		"a domain of another namespace refuses": {
			nvlink.State{
				Domains: []nvlink.Domain{elsewhere}, Nodes: []nvlink.Node{node("n0", "")}, Pods: []nvlink.Pod{pod("p0", "n0", "a")},
			},
			"refuse p0: the ComputeDomain team-b/a of its channel is in another namespace",
		},
		"a domain that goes loses its template first": {
			nvlink.State{
				Domains: []nvlink.Domain{changed(domain("a"), func(d *nvlink.Domain) { d.Deleting = true })},
			}, "remove a",
		},
		"it stays while a node is labeled for it": {
			nvlink.State{
				Domains: []nvlink.Domain{changed(domain("a"), func(d *nvlink.Domain) { d.Deleting, d.Made = true, false })},
				Nodes:   []nvlink.Node{node("n0", "a")},
			}, "",
		},
		"and is let go of then": {
			nvlink.State{
				Domains: []nvlink.Domain{changed(domain("a"), func(d *nvlink.Domain) { d.Deleting, d.Made = true, false })},
				Nodes:   []nvlink.Node{node("n0", "b")},
			}, "let go a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			actions, _, _ := nvlink.Decide(test.state, nil, start(), settings())
			if diff := cmp.Diff(test.want, script(actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// A node stays labeled for a while after its last holder has left, and for as long as a new one holds a channel.
func TestDecide_NodeStaysLabeledForAWhile(t *testing.T) {
	const refusal = "refuse p1: node n0 is labeled for ComputeDomain a already, and its channel is of b"
	vacant := nvlink.State{Domains: []nvlink.Domain{domain("a"), domain("b")}, Nodes: []nvlink.Node{node("n0", "a")}}
	held := vacant
	held.Pods = []nvlink.Pod{pod("p0", "n0", "a")}
	held.Pods[0].Prepared = true
	// A pod of another domain holds nothing, but waits for the node.
	vacant.Pods = []nvlink.Pod{pod("p1", "n0", "b")}
	var memory nvlink.Memory
	for _, look := range []struct {
		after time.Duration
		state nvlink.State
		want  string
		due   time.Duration
	}{
		{0, held, "", 0},
		{time.Second, vacant, refusal, 5 * time.Second},
		{3 * time.Second, vacant, refusal, 3 * time.Second},
		{4 * time.Second, held, "", 0},
		{7 * time.Second, vacant, refusal, 5 * time.Second},
		{12 * time.Second, vacant, refusal + "\nunlabel n0 a", 0},
	} {
		var actions []nvlink.Action
		var due time.Duration
		actions, memory, due = nvlink.Decide(look.state, memory, start().Add(look.after), settings())
		if got := script(actions); got != look.want || due != look.due {
			t.Errorf("after %v: %q, next look in %v; want %q in %v", look.after, got, due, look.want, look.due)
		}
	}
}

func TestDecide_NodeDelayFollowsSeed(t *testing.T) {
	wait := func(name string, seed uint64) time.Duration {
		state := nvlink.State{Nodes: []nvlink.Node{node(name, "a")}}
		_, _, due := nvlink.Decide(state, nil, start(), nvlink.Settings{
			Quickest: 5 * time.Second, Slowest: 30 * time.Second, Seed: seed,
		})
		return due
	}
	seen := map[time.Duration]bool{}
	for i := range 50 {
		name := fmt.Sprint("n", i)
		due := wait(name, 1)
		if due < 5*time.Second || due > 30*time.Second || due != wait(name, 1) {
			t.Errorf("node %s is labeled for %v more, then for %v", name, due, wait(name, 1))
		}
		seen[due] = true
	}
	if len(seen) < 40 || wait("n0", 1) == wait("n0", 2) {
		t.Errorf("%d different delays of 50 nodes, and %v with either seed", len(seen), wait("n0", 1))
	}
}
