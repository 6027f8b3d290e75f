package gangpreemption

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Pause is pause.
const Pause = pause

// Underway is underway.
type Underway struct{ of underway }

// Begin is begin.
func (u *Underway) Begin(pod types.UID, now time.Time) bool { return u.of.begin(pod, now) }

// End is end.
func (u *Underway) End(pod types.UID, now time.Time) { u.of.end(pod, now) }

// Holds is holds.
func (u *Underway) Holds(unit snapshot.Unit) bool { return u.of.holds(unit) }

// Len returns the number of remembered pods.
func (u *Underway) Len() int { return len(u.of.pods) }
