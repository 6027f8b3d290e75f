// Package metrics holds the scheduler's own metrics about gangs, beside kube-scheduler's and at the same endpoint.
// Every name begins with lockstep_scheduler.
package metrics

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const prefix = "lockstep_scheduler"

// The values of the label result of DecisionDuration.
const (
	ResultPlaced = "placed"
	ResultWaits  = "waits"
	ResultWrong  = "wrong_request"
	ResultError  = "error"
)

// The values of the label outcome of Predictions: within the interval that eight in ten runs should end in, before it,
// or after it.
const (
	PredictionWithin = "within"
	PredictionBelow  = "below"
	PredictionAbove  = "above"
)

// The values of the label outcome of Reservations.
const (
	// ReservationKept is for a gang that started when it was expected to, or earlier; ReservationLate for one that did
	// later.
	ReservationKept = "kept"
	ReservationLate = "late"
	// ReservationOpen is for one without a known start.
	ReservationOpen = "open"
)

var (
	// GangWait is the time from a gang's queueing until all needed members were bound.
	GangWait = histogram("gang_wait_seconds",
		"Time from when a gang was queued until all the members that it needs were bound.",
		metrics.ExponentialBuckets(0.1, 2, 21))
	// DecisionDuration is the time that one decision took, by result.
	DecisionDuration = histogramBy("result", "decision_duration_seconds",
		"Time to decide where a gang goes, without the framework's own verification.",
		metrics.ExponentialBuckets(0.0001, 2, 18))
	// Shortfalls counts the decisions that a gang waits, by the main obstacle.
	Shortfalls = metrics.NewCounterVec(counter("shortfalls_total",
		"Decisions that a gang has to wait, by the rule that stood in the way most."), []string{"rule"})
	// Gap is the excess of a placement's cost over the bound that no placement can beat.
	Gap = histogram("placement_gap_ratio",
		"Cost of a placement above the bound that no placement of the gang can beat, as a fraction of the bound.",
		[]float64{0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1})
	// Domains is the number of domains of each level that placements use.
	Domains = histogramBy("level", "placement_domains", "Domains of a level that a placement uses.",
		metrics.ExponentialBuckets(1, 2, 12))
	// Fragmentation is the part of the free places that gangs like the last ones cannot use inside one domain.
	Fragmentation = metrics.NewGaugeVec(gauge("fragmentation_ratio",
		"Part of the free places of a level that gangs of the sizes seen last cannot use inside one domain of it."),
		[]string{"level"})
	// Largest is the number of members like those of the last gang that the roomiest domain of a level can take.
	Largest = metrics.NewGaugeVec(gauge("largest_placeable_members",
		"Members like those of the last gang that one domain of the level can take at most."), []string{"level"})
	// Parked is the number of gangs that wait out of the queue until something changes.
	Parked = metrics.NewGauge(gauge("parked_gangs",
		"Gangs that wait out of the queue until something changes that could help."))
	// Held is the number of places that are reserved for members that are still to be created.
	Held = metrics.NewGauge(gauge("held_slots", "Places that are held for members of running gangs that are to come."))
	// Refusals counts the pins that the framework's filters refused.
	Refusals = metrics.NewCounter(counter("pin_refusals_total", "Planned nodes that the framework's filters refused."))
	// Quarantined is the number of nodes in quarantine for all gangs.
	Quarantined = metrics.NewGauge(
		gauge("quarantined_nodes", "Nodes that get no gang because pods failed or were refused there."),
	)
	// Reservations counts the gangs that started from a place reserved for them, by whether they did in time.
	Reservations = metrics.NewCounterVec(counter(
		"reservations_total",
		"Gangs for which a place was kept and that started, by whether they did when it was first expected.",
	), []string{"outcome"})
	// Predictions counts the completed runs whose time was predicted, by where it lay.
	Predictions = metrics.NewCounterVec(counter(
		"run_time_predictions_total",
		"Completed runs whose time was predicted, by whether it lay in the interval that eight in ten should lie in, below or above it.",
	), []string{"outcome"})
	// ReservationError is the deviation of the start of such a gang from its first forecast.
	ReservationError = histogram(
		"reservation_error_seconds",
		"Time between when a gang started for which a place was kept and when that was first expected, earlier or later.",
		metrics.ExponentialBuckets(1, 2, 18),
	)
	// PreemptionDuration is the time that the choice of victims took.
	PreemptionDuration = histogram("preemption_duration_seconds",
		"Time to choose the victims of a preemption, without the framework's own verification.",
		metrics.ExponentialBuckets(0.0001, 2, 18))
	// PreemptedGangs counts the gangs that were evicted for more important ones.
	PreemptedGangs = metrics.NewCounter(counter("preempted_gangs_total",
		"Gangs that were evicted for a more important gang."))
	// PreemptedHours is the work that was lost with them, and with single pods, in accelerator-hours.
	PreemptedHours = metrics.NewCounter(counter("preempted_accelerator_hours_total",
		"Accelerator-hours of work since the last checkpoint, or the start, that preemption lost."))
	// Amplification is the number of accelerators freed for each requested one.
	Amplification = histogram("preemption_amplification_ratio",
		"Accelerators that victims held for each one that the gang asks for.",
		[]float64{0.25, 0.5, 1, 1.25, 1.5, 2, 3, 5, 10, 20})
	// MovedGangs counts the gangs that lost members and start again as a whole in another place.
	MovedGangs = metrics.NewCounter(counter(
		"moved_gangs_total",
		"Gangs that lost members for which there was no room, and that were evicted to start again as a whole elsewhere.",
	))
	// PartialGangs counts the gangs that were evicted because they did not become whole.
	PartialGangs = metrics.NewCounter(counter("partial_gangs_evicted_total",
		"Gangs whose bound members were evicted because the others got no node, or were refused by one."))
	// IncompleteHeld is the time for which members of incomplete gangs held accelerators.
	IncompleteHeld = metrics.NewCounter(counter(
		"incomplete_gang_device_seconds_total",
		"Accelerator-seconds held by bound members of gangs that lacked other members: while they started, or after a loss.",
	))

	readers reader
)

func histogram(name, help string, buckets []float64) *metrics.Histogram {
	return metrics.NewHistogram(histogramOf(name, help, buckets))
}

func histogramBy(label, name, help string, buckets []float64) *metrics.HistogramVec {
	return metrics.NewHistogramVec(histogramOf(name, help, buckets), []string{label})
}

func histogramOf(name, help string, buckets []float64) *metrics.HistogramOpts {
	return &metrics.HistogramOpts{
		Subsystem: prefix, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	}
}

func gauge(name, help string) *metrics.GaugeOpts {
	return &metrics.GaugeOpts{Subsystem: prefix, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
}

func counter(name, help string) *metrics.CounterOpts {
	return &metrics.CounterOpts{Subsystem: prefix, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
}

// Register adds them to the registry that kube-scheduler serves. It may be called more than once.
var Register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(
		GangWait,
		DecisionDuration,
		Shortfalls,
		Gap,
		Domains,
		Fragmentation,
		Largest,
		Parked,
		Held,
		Refusals,
		Quarantined,
		PartialGangs,
		IncompleteHeld,
		MovedGangs,
		Reservations,
		ReservationError,
		Predictions,
		PreemptionDuration,
		PreemptedGangs,
		PreemptedHours,
		Amplification,
	)
	legacyregistry.CustomMustRegister(&readers)
})
