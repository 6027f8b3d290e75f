package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// addUnits puts a run among the running units: one, and one for each member that an elastic job can do without.
func (p *player) addUnits(r *run) {
	if r.job == nobody || !p.shrinks(r.job) {
		p.units.Add(r.unit)
		return
	}
	for _, part := range slices.Clone(p.units.Parts(r.unit.ID)) {
		p.units.Remove(part.ID)
	}
	fewest, least := *r.unit, p.scene.Jobs[r.job].Min
	fewest.Holds = nil
	var parts []*contention.Unit
	for rank, node := range r.nodes {
		if node < 0 {
			continue
		}
		held := p.heldBy(r, rank)
		if len(fewest.Holds) < least {
			fewest.Holds = append(fewest.Holds, held)
			continue
		}
		parts = append(parts, p.newPart(r, rank, held))
	}
	if len(parts) > 0 {
		fewest.Stops = r.unit.Accelerators
		fewest.Accelerators = accelerators(fewest.Holds, p.scene.Accelerator)
	}
	p.units.Add(&fewest)
	for _, part := range parts {
		p.units.Add(part)
	}
}

// newPart returns the unit of a member that an elastic job can do without.
func (p *player) newPart(r *run, rank int, held topology.Held) *contention.Unit {
	part := *r.unit
	part.ID, part.Of, part.Holds = p.partID(r.job, rank), r.unit.ID, []topology.Held{held}
	part.Stops, part.Accelerators = r.unit.Accelerators, accelerators(part.Holds, p.scene.Accelerator)
	if at := slices.IndexFunc(r.parting, func(of parting) bool { return of.rank == rank }); at >= 0 {
		part.Leaving, part.End = true, known(r.parting[at].at)
	}
	return &part
}

// removeUnits takes a run from the running units, and returns what it was there.
func (p *player) removeUnits(r *run) []*contention.Unit {
	if r.job == nobody || !p.shrinks(r.job) {
		p.units.Remove(r.unit.ID)
		return []*contention.Unit{r.unit}
	}
	out := []*contention.Unit{p.units.Remove(r.unit.ID)}
	for _, part := range slices.Clone(p.units.Parts(r.unit.ID)) {
		out = append(out, p.units.Remove(part.ID))
	}
	return out
}
