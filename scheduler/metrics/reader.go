package metrics

import (
	"sync/atomic"

	"k8s.io/component-base/metrics"
)

// reader is an empty collector that counts the reads of the metrics.
type reader struct {
	metrics.BaseStableCollector

	reads atomic.Uint64
}

// DescribeWithStability describes nothing.
func (*reader) DescribeWithStability(chan<- *metrics.Desc) {}

// CollectWithStability collects nothing.
func (r *reader) CollectWithStability(chan<- metrics.Metric) { r.reads.Add(1) }

// Reads returns the number of reads of the metrics. Figures of the whole fleet cost a look at every node, and are
// computed only if they are read.
func Reads() uint64 { return readers.reads.Load() }
