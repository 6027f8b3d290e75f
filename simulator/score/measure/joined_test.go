package measure_test

import (
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// An elastic job starts with two of three members, which is no violation; the third joins, is counted once, and all
// three leave.
func TestTally_CountsJoinedMembersOnce(t *testing.T) {
	s := racks(t, 4)
	add(s, 0, 100, 3, 4).Min = 2
	tally := measure.New(s, measure.Header{})
	tell := func(at int, kind engine.Kind, nodes ...int) {
		tally.Happens(engine.Event{At: seconds(at), Kind: kind, Running: engine.None, Nodes: nodes})
	}
	tell(0, engine.Submitted)
	tell(0, engine.Started, 0, 1)
	tell(50, engine.Joined, 0, 1, 2)
	tell(100, engine.Ended)
	card := tally.Scorecard(time.Second)
	if card.Violations != (measure.Violations{}) || card.Pods.Placed != 3 || card.Gangs.Finished != 1 {
		t.Errorf("violations %+v, %d pods, %d gangs finished", card.Violations, card.Pods.Placed, card.Gangs.Finished)
	}
	if got, want := card.Utilization.Peak, 12.0/16; got != want {
		t.Errorf("peak %g, want %g", got, want)
	}
}
