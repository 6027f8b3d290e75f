package nodehealth

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limits are those of quarantine.
type Limits struct {
	// HalfLife is the time in which a strike loses half its weight; 0 for no quarantine.
	HalfLife time.Duration
	// MostPercent is the percentage of nodes that may be in quarantine at a time, at least one node: many suspicious
	// nodes often have one bad driver in common.
	MostPercent int
}

// Enough is the weight of strikes from which on a node is in quarantine: two of them, until they have lost a quarter.
const Enough = 1.5

// Ledger remembers the strikes against nodes. Whatever a kubelet cannot give a pod is a strike. That ranks fail is
// none: most often it is their program's fault, which starts again in its place and fails there again. So a gang that
// has failed twice on a node makes a trial: it starts again without that node. If it fails there too, the node is
// cleared. If it runs for as long as it did before, and for ten minutes, the node gets two strikes.
//
// All strikes from one namespace count as one in each other: no namespace can put a node into quarantine for others by
// itself. A user can have a node fail ranks, and can have its kubelet refuse pods, by pods that name that node and take
// its room before them.
//
// It is not safe for concurrent use.
type Ledger struct {
	limits Limits
	nodes  map[string][]strike
	trials map[types.UID]*trial
}

// strike is one strike against a node. The namespace is that of the gang, or of the pod that was refused.
type strike struct {
	at        time.Time
	namespace string
}

// NewLedger makes an empty ledger.
func NewLedger(limits Limits) *Ledger {
	return &Ledger{limits: limits, nodes: make(map[string][]strike), trials: make(map[types.UID]*trial)}
}

// Refused adds the strike of a kubelet that could not give a pod of a namespace the promised resources.
func (l *Ledger) Refused(node, namespace string, now time.Time) { l.add(node, strike{now, namespace}) }

// Forgive forgets the strikes of a node: it is deleted, or an administrator has opened it again.
func (l *Ledger) Forgive(node string) {
	delete(l.nodes, node)
	maps.DeleteFunc(l.trials, func(_ types.UID, t *trial) bool { return t.node == node })
}

// Quarantined returns the names of the nodes that are in quarantine for the gangs of a namespace, of a fleet of that
// many nodes, in order. "" stands for each namespace without strikes.
func (l *Ledger) Quarantined(namespace string, nodes int, now time.Time) []string {
	l.settle(now)
	weights := make(map[string]float64)
	for node := range l.nodes {
		if w := l.weight(node, namespace, now); w >= Enough {
			weights[node] = w
		}
	}
	worst := slices.SortedFunc(maps.Keys(weights), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
	worst = worst[:min(len(worst), max(1, nodes*l.limits.MostPercent/100))]
	slices.Sort(worst)
	return worst
}

// Left returns the time until the node is in quarantine no more for the gangs of a namespace, if no strike is added:
// weights halve together.
func (l *Ledger) Left(node, namespace string, now time.Time) time.Duration {
	w := l.weight(node, namespace, now)
	if w < Enough {
		return 0
	}
	return time.Duration(math.Log2(w/Enough) * float64(l.limits.HalfLife))
}

// weight is that of the strikes against a node, as a namespace sees them.
func (l *Ledger) weight(node, namespace string, now time.Time) float64 {
	sum, others := 0.0, make(map[string]float64)
	for _, s := range l.nodes[node] {
		w := math.Exp2(-float64(now.Sub(s.at)) / float64(l.limits.HalfLife))
		switch s.namespace {
		case namespace:
			sum += w
		default:
			others[s.namespace] = max(others[s.namespace], w)
		}
	}
	for _, other := range slices.Sorted(maps.Keys(others)) { // sums of floats depend on their order
		sum += others[other]
	}
	return sum
}

// A strike is forgotten after so many half-lives, and of a node's strikes only the latest are stored.
const (
	longest     = 4
	mostStrikes = 32
)

func (l *Ledger) add(node string, s strike) {
	if l.limits.HalfLife == 0 {
		return
	}
	kept := slices.DeleteFunc(
		l.nodes[node],
		func(old strike) bool { return s.at.Sub(old.at) > longest*l.limits.HalfLife },
	)
	kept = append(kept, s)
	l.nodes[node] = kept[max(0, len(kept)-mostStrikes):]
}
