package metrics

import (
	"sync/atomic"

	"k8s.io/component-base/metrics"
)

// reader is a collector of nothing: it notes that somebody reads the metrics.
type reader struct {
	metrics.BaseStableCollector

	unread atomic.Bool
}

// DescribeWithStability describes nothing.
func (*reader) DescribeWithStability(chan<- *metrics.Desc) {}

// CollectWithStability collects nothing.
func (r *reader) CollectWithStability(chan<- metrics.Metric) { r.unread.Store(false) }

// FleetRead reports whether somebody has read the metrics since it was last asked, and at first. What is said about the whole fleet
// costs a look at every node, and need not be worked out for nobody.
func FleetRead() bool { return !readers.unread.Swap(true) }
