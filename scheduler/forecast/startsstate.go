package forecast

// StartsState is the part of Starts that has to survive a restart: not the waits that are not over. It can be written
// as JSON.
type StartsState struct {
	// Longest is the longest wait so far, in seconds.
	Longest int64 `json:"longest,omitempty"`
	// Sizes are the classes of workloads, the smallest first.
	Sizes []WaitsState `json:"sizes,omitempty"`
}

// WaitsState is the state of the waits of a size class.
type WaitsState struct {
	// Shifts are those of the low and of the high bound of each way, in parts of 4096 of an octave.
	Shifts []int64 `json:"shifts"`
	// Losses are the fading pinball losses of each way, in thousandths of seconds.
	Losses []int64 `json:"losses"`
	// Ended are the deviations that are not empty.
	Ended []EndedState `json:"ended,omitempty"`
}

// EndedState holds the deviations of ended waits from a view.
type EndedState struct {
	// View is the number of the view, Magnitude that of its class, -1 for all.
	View      int `json:"view"`
	Magnitude int `json:"magnitude"`
	// Forecasts is the number of forecasts.
	Forecasts int64 `json:"told"`
	// Buckets are pairs of a bucket and its weight.
	Buckets [][2]int64 `json:"buckets"`
}

// allMagnitudes stands for views of any magnitude.
const allMagnitudes = -1

// State returns the state.
func (s *Starts) State() StartsState {
	out := StartsState{Longest: s.longest}
	for size := range s.sizes {
		of := &s.sizes[size]
		var w WaitsState
		for _, way := range of.ways {
			w.Losses = append(w.Losses, way.loss)
			w.Shifts = append(w.Shifts, way.shifts[:]...)
		}
		for view := range of.all {
			for magnitude := allMagnitudes; magnitude < magnitudes; magnitude++ {
				d := of.at(view, magnitude)
				if b := d.ended.sparse(); len(b) > 0 {
					w.Ended = append(w.Ended, EndedState{view, magnitude, d.told, b})
				}
			}
		}
		out.Sizes = append(out.Sizes, w)
	}
	return out
}

// at returns the deviations of a view, by its magnitude.
func (w *waits) at(view, magnitude int) *deviations {
	if magnitude == allMagnitudes {
		return &w.all[view]
	}
	return &w.by[view][magnitude]
}

// RestoreStarts returns the forecasts of a state. It leaves out entries that do not exist, and weights that are not
// positive.
func RestoreStarts(state StartsState) *Starts {
	s := NewStarts()
	s.longest = min(max(state.Longest, leastLongest), 1<<40)
	for size, w := range state.Sizes[:min(len(state.Sizes), sizeClasses)] {
		of := &s.sizes[size]
		for i := range of.ways {
			way := &of.ways[i]
			if 2*i+1 >= len(w.Shifts) || i >= len(w.Losses) {
				break
			}
			way.loss = min(max(w.Losses[i], 0), 1<<56)
			for bound := range way.shifts {
				way.shifts[bound] = min(max(w.Shifts[2*i+bound], -mostShift), mostShift)
			}
		}
		for _, e := range w.Ended {
			if e.View < 0 || e.View >= views || e.Magnitude < allMagnitudes || e.Magnitude >= magnitudes {
				continue
			}
			d := of.at(e.View, e.Magnitude)
			d.told = max(e.Forecasts, 0)
			d.ended.fill(e.Buckets)
		}
	}
	return s
}
