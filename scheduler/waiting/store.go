package waiting

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	// storePause is the least time between two writes of the state.
	storePause = 10 * time.Second
	// storeAge is the largest age of the written state while there are leases: idle is counted in it.
	storeAge = time.Minute
)

// NewKeeper returns the keeper of a queue's state. Nothing is read or written yet. Places of thousands of nodes stay
// far below the megabyte that an object may have.
func NewKeeper(at statemap.Map, queue *Queue, t timing.Timing) *statemap.Keeper {
	return &statemap.Keeper{At: at, Of: kept{queue}, What: "leases", Pause: storePause, Age: storeAge, Timing: t}
}

// kept adapts a queue to a keeper.
type kept struct{ *Queue }

func (k kept) Ages() bool { return k.Leasing() }

func (k kept) Encode() ([]byte, error) {
	content, err := statemap.Encode(k.State())
	if err != nil {
		return nil, fmt.Errorf("leases: %w", err)
	}
	return content, nil
}

func (k kept) Decode(content []byte) error {
	var state State
	if err := json.Unmarshal(content, &state); err != nil {
		return fmt.Errorf("leases: %w", err)
	}
	k.Restore(state)
	return nil
}
