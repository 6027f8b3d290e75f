package schedulertest

import (
	"slices"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
)

// sample is a sample of a metric.
type sample struct {
	labels []string
	// value is the value of a counter or gauge.
	value float64
	// count is the number of a histogram's observations.
	count uint64
	// sum is the sum of a histogram's observations.
	sum float64
}

// Metric returns the sum of a metric's samples that have a label with the value, or of all samples for "". A histogram
// counts its observations.
func Metric(tb testing.TB, name, label string) float64 {
	tb.Helper()
	sum := 0.0
	for _, s := range samples(tb, name, label) {
		sum += s.value + float64(s.count)
	}
	return sum
}

// WaitMetric waits until Metric is at least the wanted value.
func WaitMetric(tb testing.TB, name, label string, want float64) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); Metric(tb, name, label) < want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("%s is %v, want %v", name, Metric(tb, name, label), want)
		}
	}
}

// attempts returns the number of attempts to schedule a PodGroup that succeeded, and the seconds that they took.
func attempts(tb testing.TB) (count uint64, seconds float64) {
	tb.Helper()
	for _, s := range samples(tb, "scheduler_podgroup_scheduling_attempt_duration_seconds", "scheduled") {
		count += s.count
		seconds += s.sum
	}
	return count, seconds
}

// samples returns the samples of a metric that have a label with the value, or all samples for "".
func samples(tb testing.TB, name, label string) []sample {
	tb.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	var out []sample
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			s := sample{
				value: m.GetCounter().GetValue() + m.GetGauge().GetValue(),
				count: m.GetHistogram().GetSampleCount(), sum: m.GetHistogram().GetSampleSum(),
			}
			for _, l := range m.GetLabel() {
				s.labels = append(s.labels, l.GetValue())
			}
			if label == "" || slices.Contains(s.labels, label) {
				out = append(out, s)
			}
		}
	}
	return out
}
