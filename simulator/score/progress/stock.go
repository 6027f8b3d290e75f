package progress

import (
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// mostDomains is the number of domains of a strip.
const mostDomains = 72

// stock holds the accelerators of domains, and those in use. Those of nodes that are closed, failed or drained are not
// there, unless they are in use.
type stock struct {
	total, used []int64
	away        []bool
	inUse       int64
	there       int64
	// level names the level that the strip shows, domains are the uses of its domains; of is the domain of each node,
	// or -1.
	level   string
	domains []DomainUse
	of      []int32
}

// newStock is the stock of a scenario's beginning.
func newStock(s *scenario.Scenario) *stock {
	n := s.Ledger.Len()
	k := &stock{total: make([]int64, n), used: make([]int64, n), away: make([]bool, n), of: make([]int32, n)}
	k.divide(s.Ledger.Tree)
	for node := range n {
		k.total[node] = s.Ledger.Total[node][s.Accelerator]
		k.appear(node, k.total[node])
		if s.Closed[node] {
			k.withdraw(node)
		}
	}
	return k
}

// divide chooses the strip's level: the innermost that has at least two domains and not more than fit; without one, the
// outermost that has at least two, and as many of these are shown as fit.
func (k *stock) divide(tree *topology.Tree) {
	for level := len(tree.Levels()); level >= 0; level-- {
		of, names, name := domains(tree, level)
		if len(names) < 2 {
			continue
		}
		fits := len(names) <= mostDomains
		k.of, k.level, k.domains = of, name, make([]DomainUse, len(names))
		for i, n := range names {
			k.domains[i].Name = n
		}
		if fits {
			return
		}
	}
}

// domains numbers the domains of a level in tree order.
func domains(tree *topology.Tree, level int) (of []int32, names []string, name string) {
	number := make(map[string]int32)
	of = make([]int32, tree.Len())
	for node := range of {
		domain, ok := tree.Domain(node, level)
		if !ok {
			of[node] = -1
			continue
		}
		path := domain.String()
		i, known := number[path]
		if !known {
			i = int32(len(names))
			number[path] = i
			names, name = append(names, path), domain.Level.Name
		}
		of[node] = i
	}
	return of, names, name
}

// appear lets n accelerators of a node be there; below 0 they vanish.
func (k *stock) appear(node int, n int64) {
	k.there += n
	if d := k.of[node]; d >= 0 && len(k.domains) > 0 {
		k.domains[d].There += n
	}
}

// take puts n accelerators of a node into use, or below 0 out of it.
func (k *stock) take(node int, n int64) {
	k.used[node] += n
	k.inUse += n
	if d := k.of[node]; d >= 0 && len(k.domains) > 0 {
		k.domains[d].InUse += n
	}
	if k.away[node] {
		k.appear(node, n)
	}
}

// withdraw takes a node's free accelerators out of service, and restore returns them; both may be called twice.
func (k *stock) withdraw(node int) {
	if !k.away[node] {
		k.away[node] = true
		k.appear(node, k.used[node]-k.total[node])
	}
}

func (k *stock) restore(node int) {
	if k.away[node] {
		k.away[node] = false
		k.appear(node, k.total[node]-k.used[node])
	}
}
