package podsecurity

import (
	"maps"
	"sync"
	"time"

	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/clock"
)

// counts is the time for which a level is used after it was read.
const counts = 10 * time.Second

// recent caches levels for that time. It is safe for concurrent use.
type recent struct {
	clock  clock.PassiveClock
	mu     sync.Mutex
	levels map[string]read
}

// read is a level, and the instant at which it was read.
type read struct {
	level api.LevelVersion
	at    time.Time
}

func (r *recent) find(namespace string) (api.LevelVersion, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.levels[namespace]
	return found.level, ok && r.clock.Since(found.at) < counts
}

// keep caches a level, and drops expired ones.
func (r *recent) keep(namespace string, level api.LevelVersion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.levels, func(_ string, of read) bool { return r.clock.Since(of.at) >= counts })
	r.levels[namespace] = read{level, r.clock.Now()}
}
