package progress

import "time"

// mostBins is the resolution of a history: enough for a column of any terminal.
const mostBins = 256

// history holds the part of the accelerators that was in use, over all virtual time so far, in equal bins. When they no
// longer suffice, neighbors are put together, so it takes the same room after a second and after a year.
type history struct {
	width time.Duration
	bins  []bin
}

// bin holds accelerator-seconds: those in use, and those that were there.
type bin struct{ used, there float64 }

// add records the use from one instant to a later one, the second one excluded.
func (h *history) add(from, to time.Duration, used, there int64) {
	if h.width == 0 {
		h.width = time.Second
	}
	for to > h.width*mostBins {
		h.halve()
	}
	for at := from; at < to; {
		i := int(at / h.width)
		for len(h.bins) <= i {
			h.bins = append(h.bins, bin{})
		}
		end := min(to, h.width*time.Duration(i+1))
		seconds := (end - at).Seconds()
		h.bins[i].used += float64(used) * seconds
		h.bins[i].there += float64(there) * seconds
		at = end
	}
}

func (h *history) halve() {
	for i := range (len(h.bins) + 1) / 2 {
		sum := h.bins[2*i]
		if 2*i+1 < len(h.bins) {
			sum.used += h.bins[2*i+1].used
			sum.there += h.bins[2*i+1].there
		}
		h.bins[i] = sum
	}
	h.bins, h.width = h.bins[:(len(h.bins)+1)/2], 2*h.width
}

// shares is the part that was in use in each bin, 0 to 1.
func (h *history) shares() []float64 {
	out := make([]float64, len(h.bins))
	for i, b := range h.bins {
		if b.there > 0 {
			out[i] = min(b.used/b.there, 1)
		}
	}
	return out
}
