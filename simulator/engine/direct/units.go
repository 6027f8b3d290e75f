package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// addUnits puts a run among the running units: one, and one for each member that an elastic job can do without.
func (p *player) addUnits(r *run) {
	if r.job == none || !p.shrinks(r.job) {
		p.units.Add(r.unit)
		return
	}
	for _, part := range slices.Clone(p.units.Parts(r.unit.ID)) {
		p.units.Remove(part.ID)
	}
	var members []contention.Member
	for rank, node := range r.nodes {
		if node < 0 {
			continue
		}
		holds := []topology.Held{p.heldBy(r, rank)}
		m := contention.Member{
			ID: p.partID(r.job, rank), Holds: holds, Accelerators: accelerators(holds, p.scene.Accelerator),
			Leaves: contention.None,
		}
		if at := slices.IndexFunc(r.parting, func(of parting) bool { return of.rank == rank }); at >= 0 {
			m.Leaves = r.parting[at].at
		}
		members = append(members, m)
	}
	for _, u := range contention.Divide(*r.unit, p.scene.Jobs[r.job].Min, members) {
		p.units.Add(u)
	}
}

// removeUnits removes a run from the running units, and returns its units.
func (p *player) removeUnits(r *run) []*contention.Unit {
	if r.job == none || !p.shrinks(r.job) {
		p.units.Remove(r.unit.ID)
		return []*contention.Unit{r.unit}
	}
	out := []*contention.Unit{p.units.Remove(r.unit.ID)}
	for _, part := range slices.Clone(p.units.Parts(r.unit.ID)) {
		out = append(out, p.units.Remove(part.ID))
	}
	return out
}
