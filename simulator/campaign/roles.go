package campaign

import (
	"github.com/lockstep-project/lockstep/simulator/baseline"
	"github.com/lockstep-project/lockstep/simulator/compare/criteria"
	"github.com/lockstep-project/lockstep/simulator/schedulers"
)

// roles says whose figures Lockstep is measured against. Its own variants are no rivals: they show what a mechanism is worth.
func roles() criteria.Roles {
	r := criteria.Roles{
		Rivals:    append(baseline.Names(), schedulers.NativeTAS),
		Foresight: []string{perfect, schedulers.Optimum},
	}
	for _, name := range baseline.Names() {
		if d, err := baseline.Describe(name); err == nil && d.Discipline == baseline.Greedy {
			r.Greedy = append(r.Greedy, name)
		}
	}
	return r
}
