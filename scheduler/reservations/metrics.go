package reservations

import (
	"strconv"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// collector reads the leases when the metrics are read. There are few: a queue bounds them.
type collector struct {
	metrics.BaseStableCollector

	queue *waiting.Queue
	clock clock.PassiveClock
	age   *metrics.Desc
	idle  *metrics.Desc
}

func newCollector(queue *waiting.Queue, c clock.PassiveClock) *collector {
	labels := []string{"namespace", "name", "reason", "open"}
	return &collector{
		queue: queue, clock: c,
		age: metrics.NewDesc("lockstep_scheduler_reservation_age_seconds",
			"Time since a reservation was granted, or last closed.", labels, nil, metrics.ALPHA, ""),
		idle: metrics.NewDesc(
			"lockstep_scheduler_reservation_idle_accelerator_seconds",
			"Accelerator-seconds that the place of a reservation has idled while another workload could have used it.",
			labels,
			nil,
			metrics.ALPHA,
			"",
		),
	}
}

// DescribeWithStability describes the metrics.
func (c *collector) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- c.age
	out <- c.idle
}

// CollectWithStability reads the leases.
func (c *collector) CollectWithStability(out chan<- metrics.Metric) {
	age, idle := c.age, c.idle
	now := c.clock.Now()
	for _, l := range c.queue.Leases() {
		values := []string{l.Owner.Namespace, l.Owner.Name, string(l.Lease.Reason), strconv.FormatBool(l.Lease.Open)}
		since := now.Sub(time.Unix(l.Lease.Since, 0)).Seconds()
		out <- metrics.NewLazyConstMetric(age, metrics.GaugeValue, since, values...) //nolint:promlinter // cannot follow a field
		spent := float64(l.Lease.Budget.Idled)
		out <- metrics.NewLazyConstMetric(idle, metrics.GaugeValue, spent, values...) //nolint:promlinter // cannot follow a field
	}
}
