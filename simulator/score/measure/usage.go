package measure

import "time"

// usage are integrals over the window, in accelerator-seconds.
type usage struct {
	used, capacity         float64
	busyUsed, busyCapacity float64
	busySeconds, peak      float64
	// wasted is the part of used whose work was lost.
	wasted float64
}

// add counts seconds in which nothing changes.
func (u *usage) add(seconds float64, h *holdings, busy busy) {
	if seconds <= 0 {
		return
	}
	// The conversions prevent products from being fused with the sums.
	used, capacity := float64(float64(h.inUse)*seconds), float64(float64(h.capacity)*seconds)
	u.used += used
	u.capacity += capacity
	if busy {
		u.busyUsed += used
		u.busyCapacity += capacity
		u.busySeconds += seconds
	}
	if h.capacity > 0 {
		u.peak = max(u.peak, float64(h.inUse)/float64(h.capacity))
	}
}

// busy reports that jobs wait.
type busy bool

// waste notes that the work of so many accelerator-seconds of the window was lost.
func (u *usage) waste(seconds float64) { u.wasted += seconds }

// goodput returns that of all work until now; unended is the time that unfinished runs spent on no useful work.
func (u *usage) goodput(unended float64) Goodput {
	useful := u.used - u.wasted - unended
	return Goodput{Mean: ratio(useful, u.capacity), GPUHours: Tidy(useful / time.Hour.Seconds())}
}

func (u *usage) utilization() Utilization {
	return Utilization{
		Mean: ratio(u.used, u.capacity), BusyMean: ratio(u.busyUsed, u.busyCapacity),
		BusySeconds: Tidy(u.busySeconds), Peak: Tidy(u.peak),
	}
}
