package victims

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/topology"
)

// Move says where a gang can start again as a whole that lost members for which there is no room near the others: the ones who
// leave are those others. It is false if the gang has lost none that it needs, if none of it runs, or if it would not fit
// anywhere else either. The ledger is what it may use: without what is held, or kept, for gangs that come first.
func Move(asked unplaced.Gang, ledger topology.Ledger, groups fwk.PodGroupLister) (Choice, bool) {
	mine, _ := snapshot.GroupOf(asked.Waiting[0])
	units := asked.Units(groups)
	own := slices.IndexFunc(units, func(u snapshot.Unit) bool { return u.Name == mine.String() })
	whole, running := unplacedAgain(asked)
	if own < 0 || running == 0 || running >= minCount(asked) {
		return Choice{}, false
	}
	survivors := topology.Running{Name: units[own].Name, Holds: units[own].Holds, End: topology.EndUnknown}
	found, short, err := topology.Evict(ledger, whole, []topology.Running{survivors})
	if short != nil || err != nil {
		return Choice{}, false
	}
	return Choice{Victims: units[own : own+1], Placement: found.Placement, Optimal: true}, true
}

// unplacedAgain is the gang as it is before its start, and how many of its members run.
func unplacedAgain(asked unplaced.Gang) (whole topology.Gang, running int) {
	whole, late := asked.Gang, 0
	whole.Members = slices.Clone(whole.Members)
	for i, m := range whole.Members {
		if m.Placed {
			running++
		}
		if m.Late {
			late++
		}
		whole.Members[i].Placed, whole.Members[i].Node = false, 0
	}
	whole.Min = min(max(minCount(asked), 1)+late, len(whole.Members))
	return whole, running
}

func minCount(asked unplaced.Gang) int {
	if gang := asked.Group.Spec.SchedulingPolicy.Gang; gang != nil {
		return int(gang.MinCount)
	}
	return 0
}
