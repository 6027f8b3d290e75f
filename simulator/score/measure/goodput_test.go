package measure_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine"
)

// Two nodes of four GPUs. The first job has a node for 100 s. The second is preempted after 40 s, and does all of its
// 60 s later: its first 40 s are lost.
//
//	n0 |first─────────────────────────────────────────────|      100 s
//	n1 |second (lost)─────|      |second───────────────────────|  40 s + 60 s
func TestGoodput_LosesWhatIsPreempted(t *testing.T) {
	s := racks(t, 2)
	add(s, 0, 100, 1, 4)
	add(s, 0, 60, 1, 4)
	tally := listen(s)
	tally.job(0, engine.Submitted, 0)
	tally.job(0, engine.Submitted, 1)
	tally.job(0, engine.Started, 0, 0)
	tally.job(0, engine.Started, 1, 1)
	tally.job(40, engine.Preempted, 1)
	tally.job(50, engine.Started, 1, 1)
	tally.job(100, engine.Ended, 0)
	tally.job(110, engine.Ended, 1)
	equal(t, tally.card(), map[string]float64{
		"utilisation.mean":     (100 + 40 + 60) / 220.0,
		"goodput.mean":         (100 + 60) / 220.0,
		"preemption.gpu_hours": 160 / 3600.0,
	})
}
