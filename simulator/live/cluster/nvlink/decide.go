package nvlink

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Memory is since when labeled nodes are without a holder, by name.
type Memory map[string]time.Time

// Decide returns the actions that are due at an instant, the memory for the next look, and the time after which that is
// due in any case; zero for never. It changes none of its inputs.
func Decide(state State, memory Memory, now time.Time, settings Settings) ([]Action, Memory, time.Duration) {
	d := &deciding{state: state, now: now, settings: settings, next: Memory{}, labels: map[string]types.UID{}}
	for _, node := range state.Nodes {
		d.labels[node.Name] = node.Domain
	}
	d.channels()
	d.templates()
	d.pods()
	d.vacate(memory)
	d.release()
	return d.actions, d.next, d.due
}

// deciding is a decision on its way.
type deciding struct {
	state    State
	now      time.Time
	settings Settings
	next     Memory
	due      time.Duration
	actions  []Action
	// labels are those of the nodes, as they will be.
	labels map[string]types.UID
}

func (d *deciding) do(verb Verb, key types.NamespacedName, domain Domain) {
	d.actions = append(d.actions, Action{Verb: verb, Key: key, Domain: domain})
}

func nodeKey(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// channels publishes the channels of nodes in a clique.
func (d *deciding) channels() {
	for _, node := range d.state.Nodes {
		switch {
		case node.Clique != "" && !node.Published:
			d.do(Publish, nodeKey(node.Name), Domain{})
		case node.Clique == "" && node.Published:
			d.do(Withdraw, nodeKey(node.Name), Domain{})
		}
	}
}

// templates gives each domain its claim template, and removes those of domains that are being deleted.
func (d *deciding) templates() {
	for _, domain := range d.state.Domains {
		switch {
		case domain.Deleting && domain.Made:
			d.do(Remove, domain.Key, domain)
		case domain.Deleting:
		case !domain.Held:
			d.do(Hold, domain.Key, domain) // the template waits for the next look: it must not outlive the domain
		case !domain.Made:
			d.do(Make, domain.Key, domain)
		}
	}
}

// pods prepares the claims of bound pods: the node of one with a channel is labeled for its domain first.
func (d *deciding) pods() {
	for _, pod := range d.state.Pods {
		if pod.Prepared || !pod.Allocated {
			continue
		}
		ready := true
		for _, uid := range pod.Domains {
			reason := d.prepare(pod, uid)
			if reason != "" {
				d.actions = append(d.actions, Action{Verb: Refuse, Key: pod.Key, Reason: reason})
			}
			ready = ready && reason == "" && d.is(pod.Node, uid)
		}
		if ready {
			d.do(Prepare, pod.Key, Domain{})
		}
	}
}

// prepare labels the pod's node for a domain, or returns the reason why it cannot.
func (d *deciding) prepare(pod Pod, uid types.UID) (reason string) {
	i := slices.IndexFunc(d.state.Domains, func(domain Domain) bool { return domain.UID == uid })
	switch label := d.labels[pod.Node]; {
	case i < 0 || d.state.Domains[i].Deleting:
		return fmt.Sprintf("the ComputeDomain %s of its channel is gone", uid)
	case d.state.Domains[i].Key.Namespace != pod.Key.Namespace:
		return fmt.Sprintf("the ComputeDomain %s of its channel is in another namespace", d.state.Domains[i].Key)
	case label == "":
		d.labels[pod.Node] = uid
		d.do(Label, nodeKey(pod.Node), d.state.Domains[i])
	case label != uid:
		return fmt.Sprintf(
			"node %s is labeled for ComputeDomain %s already, and its channel is of %s",
			pod.Node,
			label,
			uid,
		)
	}
	return ""
}

// is reports whether a node is seen to be labeled for a domain.
func (d *deciding) is(name string, uid types.UID) bool {
	return slices.ContainsFunc(d.state.Nodes, func(node Node) bool { return node.Name == name && node.Domain == uid })
}

// vacate unlabels nodes some time after the last holder of a channel is deleted.
func (d *deciding) vacate(memory Memory) {
	holders := map[string][]Pod{}
	for _, pod := range d.state.Pods {
		holders[pod.Node] = append(holders[pod.Node], pod)
	}
	for _, node := range d.state.Nodes {
		held := slices.ContainsFunc(holders[node.Name], func(pod Pod) bool {
			return !pod.Allocated || slices.Contains(pod.Domains, node.Domain)
		})
		if node.Domain == "" || held {
			continue
		}
		since, known := memory[node.Name]
		if !known {
			since = d.now
		}
		left := d.settings.delay(node.Name, node.Domain) - d.now.Sub(since)
		if left <= 0 {
			d.do(Unlabel, nodeKey(node.Name), Domain{UID: node.Domain})
			continue
		}
		d.next[node.Name] = since
		d.due = min(cmp.Or(d.due, left), left)
	}
}

// release lets go of domains that were deleted and for which no node is labeled.
func (d *deciding) release() {
	used := map[types.UID]bool{}
	for _, uid := range d.labels {
		used[uid] = true
	}
	for _, domain := range d.state.Domains {
		if domain.Deleting && domain.Held && !domain.Made && !used[domain.UID] {
			d.do(LetGo, domain.Key, domain)
		}
	}
}

// delay returns the time for which a node stays labeled for a domain that has no users on it.
func (s Settings) delay(node string, domain types.UID) time.Duration {
	hash := fnv.New64a()
	seed := binary.LittleEndian.AppendUint64(nil, s.Seed)
	for _, part := range [][]byte{seed, []byte(node), []byte(domain)} {
		_, _ = hash.Write(part) // a hash takes all
	}
	span := uint64(max(0, s.Slowest-s.Quickest)/time.Millisecond) + 1
	return s.Quickest + time.Duration(hash.Sum64()%span)*time.Millisecond
}
