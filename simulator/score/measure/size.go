package measure

import "github.com/lockstep-project/lockstep/simulator/inputs/scenario"

// sizes puts jobs into size classes.
type sizes struct {
	// most is the number of accelerators of the fleet's largest node.
	most int64
}

func newSizes(s *scenario.Scenario) sizes {
	z := sizes{most: 1}
	for _, total := range s.Ledger.Total {
		z.most = max(z.most, total[s.Accelerator])
	}
	return z
}

// SizeClasses are the names of the size classes, the smallest first.
func SizeClasses() []string {
	return []string{"no GPU", "1 GPU", "one node", "2-4 nodes", "5-16 nodes", "17-64 nodes", "more than 64 nodes"}
}

// of is the number of the job's class.
func (z sizes) of(j *scenario.Job) int {
	switch nodes := (j.Accelerators + z.most - 1) / z.most; {
	case j.Accelerators <= 1:
		return int(max(j.Accelerators, 0))
	case nodes <= 1:
		return 2
	case nodes <= 4:
		return 3
	case nodes <= 16:
		return 4
	case nodes <= 64:
		return 5
	}
	return 6
}

func (z sizes) name(j *scenario.Job) string { return SizeClasses()[z.of(j)] }
