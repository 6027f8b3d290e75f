package runtimes

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	// pause is the least time between two writes of the history: the next scheduler lacks the runs that ended since.
	pause = 5 * time.Minute
	// mostBytes bounds the packed history: half of the megabyte that an object may have. The classes whose last run is
	// longest ago are left out.
	mostBytes = 512 << 10
)

// NewKeeper returns the keeper of a learner's history. Nothing is read or written yet.
func NewKeeper(at statemap.Map, l *Learner, t timing.Timing) *statemap.Keeper {
	return &statemap.Keeper{At: at, Of: kept{l}, What: "run times", Pause: pause, Timing: t}
}

// state is the written state: the history, and the record of forecasts of starts.
type state struct {
	forecast.State

	Starts forecast.StartsState `json:"starts,omitzero"`
}

// kept adapts a learner to a keeper.
type kept struct{ *Learner }

// Changes counts the changes that this process learned.
func (k kept) Changes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changes
}

func (kept) Ages() bool { return false }

// Encode returns as much of the history as mostBytes hold.
func (k kept) Encode() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for most := forecast.MostKept; ; most /= 2 {
		content, err := statemap.Encode(state{k.history.State(most), k.starts.State()})
		if err != nil {
			return nil, fmt.Errorf("run times: %w", err)
		}
		if len(content) <= mostBytes || most == 0 {
			return content, nil
		}
	}
}

func (k kept) Decode(content []byte) error {
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return fmt.Errorf("run times: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.history, k.starts = forecast.Restore(s.State), forecast.RestoreStarts(s.Starts)
	return nil
}
