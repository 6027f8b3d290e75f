package summary

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// uuidHead matches the beginning of a clique: a UUID; people can only use its first part.
var uuidHead = regexp.MustCompile(`^([0-9a-fA-F]{8})-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)

// naming gives domains their names in a text.
type naming struct {
	levels []topology.Level  // without the node's own
	short  map[string]string // of domains whose full name is a UUID
}

func newNaming(r Report) naming {
	n := naming{short: map[string]string{}}
	for _, level := range r.Levels {
		if level.Key != corev1.LabelHostname { // nodes are named anyway
			n.levels = append(n.levels, level)
		}
	}
	long := map[string]string{} // by short name
	ambiguous := map[string]bool{}
	for _, job := range r.Jobs {
		for _, rank := range job.Ranks {
			for _, domain := range rank.Domains {
				short := uuidHead.ReplaceAllString(domain, "$1")
				if other, taken := long[short]; taken && other != domain {
					ambiguous[short] = true
				}
				long[short] = domain
				n.short[domain] = short
			}
		}
	}
	for domain, short := range n.short {
		if ambiguous[short] {
			n.short[domain] = domain
		}
	}
	return n
}

// path names a rank's domains at some levels: rack=rack-1 clique=6d66e126.1.
func (n naming) path(rank Rank, levels []topology.Level) string {
	parts := make([]string, 0, len(levels))
	for _, level := range levels {
		domain, known := rank.Domains[level.Name]
		if !known {
			parts = append(parts, level.Name+"=?")
			continue
		}
		parts = append(parts, level.Name+"="+n.short[domain])
	}
	return strings.Join(parts, " ")
}

// sharedLevels divides the levels into those at which all ranks are in one domain and the others. A domain counts with
// those around it, since names may repeat: once ranks part, they stay apart.
func (n naming) sharedLevels(ranks []Rank) (shared, split []topology.Level) {
	for i, level := range n.levels {
		for _, rank := range ranks {
			if rank.Domains[level.Name] != ranks[0].Domains[level.Name] {
				return shared, n.levels[i:]
			}
		}
		if len(ranks) > 0 && ranks[0].Domains[level.Name] != "" {
			shared = append(shared, level)
		}
	}
	return shared, nil
}

// where is a job's place in a few words: the innermost domain that holds all of it and has a name for people, and the
// number of its domains at each level below: "leaf-1, 2 racks, 2 cliques, 20 nodes".
func (n naming) where(job Job) string {
	placed := slices.DeleteFunc(slices.Clone(job.Ranks), func(r Rank) bool { return r.Node == "" })
	if len(placed) == 0 {
		return "-"
	}
	shared, _ := n.sharedLevels(placed)
	var parts []string
	below := 0
	for i, level := range n.levels {
		domain := placed[0].Domains[level.Name]
		if slices.Contains(shared, level) && !uuidHead.MatchString(domain) {
			parts, below = []string{domain}, i+1
		}
	}
	for i := below; i < len(n.levels); i++ {
		if count := countDomains(placed, n.levels[:i+1]); count > 0 {
			parts = append(parts, plural(count, n.levels[i].Name))
		}
	}
	nodes := map[string]bool{}
	for _, rank := range placed {
		nodes[rank.Node] = true
	}
	return strings.Join(append(parts, plural(len(nodes), "node")), ", ")
}

// countDomains counts the domains of the last level, each known by those around it, in which ranks are.
func countDomains(ranks []Rank, levels []topology.Level) int {
	domains := map[string]bool{}
	for _, rank := range ranks {
		if rank.Domains[levels[len(levels)-1].Name] == "" {
			continue
		}
		var path []string
		for _, level := range levels {
			path = append(path, rank.Domains[level.Name])
		}
		domains[strings.Join(path, "/")] = true
	}
	return len(domains)
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// group is ranks that share their domains.
type group struct {
	path  string
	ranks []Rank
}

// groups gathers ranks by their domains at some levels, in the order of their first ranks.
func (n naming) groups(ranks []Rank, levels []topology.Level) []group {
	var gathered []group
	for _, rank := range ranks {
		path := n.path(rank, levels)
		at := slices.IndexFunc(gathered, func(g group) bool { return g.path == path })
		if at < 0 {
			at = len(gathered)
			gathered = append(gathered, group{path: path})
		}
		gathered[at].ranks = append(gathered[at].ranks, rank)
	}
	return gathered
}
