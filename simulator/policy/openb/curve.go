package openb

// Sample is the state of the GPUs, as the mean over the moments at which pods had asked for about as many.
type Sample struct {
	// Allocated is in per cent of all GPUs.
	Allocated float64
	// Fragmented is the free part without use to the pods that are expected, as the paper defines it, in per cent of
	// all GPUs; FragmentedOfFree is the same in per cent of the free part.
	Fragmented, FragmentedOfFree float64
}

// curve collects samples after each arrival, by the rounded percentage of the GPUs that pods have asked for, whether
// they were placed or not.
type curve struct {
	// capacity is the cluster's, arrived the sum of the pods' requests; unit is that of fragmentation.
	capacity, arrived, unit int64
	sums                    []Sample
	counts                  []float64
}

func newCurve(capacity, unit int64) *curve {
	return &curve{capacity: capacity, unit: unit}
}

// add samples the world after the arrival of a pod that asked for so much.
func (c *curve) add(asked int64, w *world) {
	c.arrived += asked
	percent := int((200*c.arrived + c.capacity) / (2 * c.capacity))
	for len(c.sums) <= percent {
		c.sums, c.counts = append(c.sums, Sample{}), append(c.counts, 0)
	}
	fragmented := float64(w.fragmented) / float64(c.unit)
	sum := &c.sums[percent]
	sum.Allocated += 100 * float64(w.allocated) / float64(c.capacity)
	sum.Fragmented += 100 * fragmented / float64(c.capacity)
	if free := c.capacity - w.allocated; free > 0 {
		sum.FragmentedOfFree += 100 * fragmented / float64(free)
	}
	c.counts[percent]++
}

// samples are the means. Where a single pod requested more than a per cent, nothing was sampled in between; there the
// state is as before that pod's arrival.
func (c *curve) samples() []Sample {
	means := make([]Sample, len(c.sums))
	for i, sum := range c.sums {
		n := c.counts[i]
		if n > 0 {
			means[i] = Sample{sum.Allocated / n, sum.Fragmented / n, sum.FragmentedOfFree / n}
		} else if i > 0 {
			means[i] = means[i-1]
		}
	}
	return means
}
