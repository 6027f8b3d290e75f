package statusserver

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// counters are the server's metrics.
type counters struct {
	requests, reports, writes, proofs *prometheus.CounterVec
	delays                            prometheus.Histogram
}

// newCounters registers the metrics; waiting returns the number of reports that wait to be written.
func newCounters(registry prometheus.Registerer, waiting func() float64) counters {
	const namespace, subsystem = "lockstep", "status_server"
	factory := promauto.With(registry)
	counter := func(name, help, label string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
		}, []string{label})
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "held_reports", Help: "Reports that wait to be written.",
	}, waiting)
	return counters{
		requests: counter("requests_total", "Requests to the status server, by HTTP code.", "code"),
		reports: counter(
			"reports_total",
			"Accepted reports, by what became of them: held, older or unchanged.",
			"outcome",
		),
		writes: counter("writes_total", "Writes of reports into TrainJobs, by result.", "result"),
		proofs: counter("proofs_total", "Proofs of identity by TokenReview: first or renewed.", "proof"),
		delays: factory.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "write_delay_seconds",
			Help:    "Time from the arrival of a report until it was written.",
			Buckets: []float64{.1, .5, 1, 5, 10, 20, 30, 40, 60, 120},
		}),
	}
}
