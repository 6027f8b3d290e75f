package nvlink

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State is the cluster as the driver sees it.
type State struct {
	// Domains are the ComputeDomains, in the order of their names.
	Domains []Domain
	// Nodes are all nodes, in the order of their names.
	Nodes []Node
	// Pods are those that are bound, have not ended and have claims, in the order of their names.
	Pods []Pod
}

// Domain is a ComputeDomain.
type Domain struct {
	Key types.NamespacedName
	UID types.UID
	// Template is the name of the claim template that it wants.
	Template string
	// Deleting is set if the domain was deleted, Held if it has our finalizer, and Made if its template exists.
	Deleting, Held, Made bool
}

// Node is a node.
type Node struct {
	Name string
	// Clique is the value of its label; empty for a node without NVLink across nodes.
	Clique string
	// Domain is the UID of the domain for which the node is labeled; empty for none.
	Domain types.UID
	// Published is set if the node's channel is published.
	Published bool
}

// Pod is a bound pod with claims.
type Pod struct {
	Key  types.NamespacedName
	Node string
	// Domains are the UIDs of those whose channels its claims have.
	Domains []types.UID
	// Allocated is set if all claims of the pod are seen, with their devices; Prepared if it may start already.
	Allocated, Prepared bool
}

// Verb is the action on an object.
type Verb string

// The verbs.
const (
	Hold     Verb = "hold"     // a domain gets our finalizer
	LetGo    Verb = "let go"   // and loses it
	Make     Verb = "make"     // the template of a domain
	Remove   Verb = "remove"   // the template of a domain
	Publish  Verb = "publish"  // the channel of a node
	Withdraw Verb = "withdraw" // the channel of a node
	Label    Verb = "label"    // a node for a domain
	Unlabel  Verb = "unlabel"  // a node
	Prepare  Verb = "prepare"  // a pod: it may start
	Refuse   Verb = "refuse"   // a pod: an Event has the reason why it does not start
)

// Action is one thing to do.
type Action struct {
	Verb Verb
	// Key names a domain, a node (without namespace) or a pod.
	Key types.NamespacedName
	// Domain is the one for whose template or label it is done; Reason is the message to a refused pod.
	Domain Domain
	Reason string
}

// Settings are the delays of the driver.
type Settings struct {
	// Slowest and Quickest bound the time for which a node stays labeled after the last holder of a channel is deleted.
	Quickest, Slowest time.Duration
	// Seed determines, with the names of node and domain, the time between these bounds.
	Seed uint64
}
