package scenario

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
)

// Pace returns the rate at which a run of a job turns time into work on nodes by rank, if so many seconds of its
// nominal work are saved. Every engine and the ledger that checks it call this.
func (s *Scenario) Pace(job int, nodes []int, done int64) cost.Pace {
	return s.Costs.Pace(s.work(job, done), nodes)
}

// Slowest returns the pace of the slowest run of a job.
func (s *Scenario) Slowest(job int) cost.Pace { return s.Costs.Slowest(s.work(job, 0)) }

func (s *Scenario) work(job int, done int64) cost.Work {
	j := &s.Jobs[job]
	least := j.Needed
	if j.Min > 0 {
		least = j.Min
	}
	return cost.Work{
		Gang:         &j.Gang,
		Least:        least,
		Share:        j.Share,
		Saves:        int64(j.Saves / time.Second),
		Accelerators: j.Accelerators,
		Done:         done,
		Scales:       j.Shrinks,
	}
}
