package reservations

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

var (
	labels = []string{"namespace", "name", "reason", "open"}
	age    = metrics.NewDesc("lockstep_scheduler_reservation_age_seconds",
		"Time since a reservation was granted, or last closed.", labels, nil, metrics.ALPHA, "")
	idle = metrics.NewDesc("lockstep_scheduler_reservation_idle_accelerator_hours",
		"Accelerator-hours that the place of a reservation has idled.", labels, nil, metrics.ALPHA, "")
)

// collector reads the leases when somebody looks at the metrics. There are few: a queue bounds them.
type collector struct {
	metrics.BaseStableCollector

	mu    sync.Mutex
	queue *waiting.Queue
	clock clock.PassiveClock
}

var (
	all      = &collector{}
	register = func(queue *waiting.Queue, c clock.PassiveClock) {
		all.mu.Lock()
		all.queue, all.clock = queue, c
		all.mu.Unlock()
		once()
	}
	once = sync.OnceFunc(func() { legacyregistry.CustomMustRegister(all) })
)

// DescribeWithStability describes the metrics.
func (*collector) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- age
	out <- idle
}

// CollectWithStability reads the leases.
func (c *collector) CollectWithStability(out chan<- metrics.Metric) {
	c.mu.Lock()
	queue, now := c.queue, c.clock.Now()
	c.mu.Unlock()
	for _, l := range queue.Leases() {
		values := []string{l.Owner.Namespace, l.Owner.Name, string(l.Lease.Reason), strconv.FormatBool(l.Lease.Open)}
		since := now.Sub(time.Unix(l.Lease.Since, 0)).Seconds()
		out <- metrics.NewLazyConstMetric(age, metrics.GaugeValue, since, values...)
		hours := float64(l.Lease.Budget.Idled) / secondsPerHour
		out <- metrics.NewLazyConstMetric(idle, metrics.GaugeValue, hours, values...)
	}
}
