package benchmark

import (
	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
)

// roles names the schedulers with which Lockstep is compared. Its own variants are no rivals: they show the value of a
// mechanism.
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
