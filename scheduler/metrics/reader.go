package metrics

import (
	"sync/atomic"

	"k8s.io/component-base/metrics"
)

// reader is a collector of nothing: it counts how often somebody reads the metrics.
type reader struct {
	metrics.BaseStableCollector

	reads atomic.Uint64
}

// DescribeWithStability describes nothing.
func (*reader) DescribeWithStability(chan<- *metrics.Desc) {}

// CollectWithStability collects nothing.
func (r *reader) CollectWithStability(chan<- metrics.Metric) { r.reads.Add(1) }

// Reads is how often the metrics were read. What is said about the whole fleet costs a look at every node, and need not be worked out
// for nobody.
func Reads() uint64 { return readers.reads.Load() }
