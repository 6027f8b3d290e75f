package gangpreemption

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// pause is the time for which a pod is left alone after an attempt to evict it, failed or not: the scheduler
// hears of a deletion a little later, and an API server that has no time has none for the same calls again.
const pause = 5 * time.Second

// underway records the evictions that are under way. A gang whose victims are still to leave is evaluated again, every
// two seconds and whenever room changes. If each answer began all evictions anew, those of a slow API server would pile
// up, on the same few pods, and as each change of a pod has to be made again when another one was faster, none would
// get through. The zero value has none.
type underway struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	pods map[types.UID]attempt
}

// attempt is an eviction that is under way, or that was over at an instant.
type attempt struct {
	on   bool
	over time.Time
}

// begin reports whether the pod is to be evicted now, and notes that it is.
func (u *underway) begin(pod types.UID, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for uid, e := range u.pods {
		if !e.on && now.Sub(e.over) >= pause {
			delete(u.pods, uid)
		}
	}
	if _, known := u.pods[pod]; known {
		return false
	}
	if u.pods == nil {
		u.pods = make(map[types.UID]attempt)
	}
	u.pods[pod] = attempt{on: true}
	return true
}

// end notes that an eviction is over.
func (u *underway) end(pod types.UID, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pods[pod] = attempt{over: now}
}

// holds reports whether a unit is leaving, as far as the scheduler knows or by an eviction that is under way.
func (u *underway) holds(unit snapshot.Unit) bool {
	if unit.Leaving() {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, pod := range unit.Pods {
		if _, known := u.pods[pod.UID]; known {
			return true
		}
	}
	return false
}
