package snapshot

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/topology"
)

// mostKeyed is the number of retained indices for required keys. Each one holds the fleet once more.
const mostKeyed = 8

// Indices are the indices of one scheduler: one for gangs that name a known level or none, and one for each of the
// label keys that were required last and are no level. It is not safe for concurrent use.
type Indices struct {
	levels []topology.Level
	health nodehealth.Rules
	plain  *Index
	// keyed are the others, the one used last first.
	keyed []keyed
}

type keyed struct {
	key   string
	index *Index
}

// NewIndices makes empty indices of the levels, nil for those that nodes carry.
func NewIndices(levels []topology.Level, health nodehealth.Rules) *Indices {
	return &Indices{levels: levels, health: health, plain: NewIndex(levels, "", health)}
}

// Plain returns the nodes with the known levels.
func (x *Indices) Plain(nodes []fwk.NodeInfo, resources []corev1.ResourceName) (View, error) {
	return updated(x.plain, nodes, resources)
}

// Found names in one line, for users, the label families that the nodes carry: it changes when the levels of the fleet
// do. It is empty if the levels are configured.
func (x *Indices) Found() string { return x.plain.view.found }

// Known reports whether a level is one of the fleet's own, configured or detected: any other is a node-label key that
// some gang requires.
func (x *Indices) Known(level topology.Level) bool {
	if x.plain.view.Tree == nil {
		return false
	}
	_, known := x.plain.view.Tree.Level(level.Key)
	return known
}

// View returns the nodes as a gang with the required key sees them: a key that is no known level, and that some node
// carries, becomes the outermost one.
func (x *Indices) View(nodes []fwk.NodeInfo, resources []corev1.ResourceName, required string) (View, error) {
	if at := slices.IndexFunc(x.keyed, func(k keyed) bool { return k.key == required }); at >= 0 {
		used := x.keyed[at]
		x.keyed = slices.Insert(slices.Delete(x.keyed, at, at+1), 0, used)
		return updated(used.index, nodes, resources)
	}
	view, err := x.Plain(nodes, resources)
	if err != nil {
		return view, err
	}
	if _, known := view.Tree.Level(required); known || required == "" || !Carries(nodes, required) {
		return view, nil
	}
	x.keyed = slices.Insert(x.keyed, 0, keyed{required, NewIndex(x.levels, required, x.health)})
	x.keyed = x.keyed[:min(len(x.keyed), mostKeyed)]
	return updated(x.keyed[0].index, nodes, resources)
}

func updated(index *Index, nodes []fwk.NodeInfo, resources []corev1.ResourceName) (View, error) {
	view, err := index.Update(nodes, resources)
	if err != nil {
		return view, fmt.Errorf("reading the fleet: %w", err)
	}
	return view, nil
}
