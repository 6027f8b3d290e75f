package victims

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
)

// gather finds who could make room for the gang: all that runs with a strictly lower priority. Of a gang all members leave or
// none, whatever its disruptionMode says: a training that lost one rank has lost all. The least important come first, then by name:
// of those in a domain that lose the same these leave. One of a higher priority would take the place of another one in its turn.
func gather(asked unplaced.Gang, groups fwk.PodGroupLister) []snapshot.Unit {
	mine, _ := snapshot.GroupOf(asked.Waiting[0])
	priority := corev1helpers.PodPriority(asked.Waiting[0])
	units := slices.DeleteFunc(asked.Units(groups), func(u snapshot.Unit) bool {
		return u.Name == mine.String() || u.Priority >= priority || u.Returns()
	})
	slices.SortStableFunc(units, func(a, b snapshot.Unit) int { return cmp.Compare(a.Priority, b.Priority) })
	return units
}

// Lost is the work that leaves with a unit, in accelerator-seconds: since its trainer last saved it, or since it started. Whoever
// is on his way out anyway loses nothing more.
func Lost(u snapshot.Unit, kinds []corev1.ResourceName, now time.Time) int64 {
	if u.Leaving() {
		return 0
	}
	since := u.Started()
	if saved := u.Saved(); saved.After(since) {
		since = saved
	}
	return u.Accelerators(kinds) * int64(max(0, now.Sub(since))/time.Second)
}
