package scheduler_test

import (
	"slices"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// counted reads a sample of a metric whose labels have the value, 0 if there is none: of a histogram how often it was
// observed.
func counted(t *testing.T, name, value string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if value == "" || slices.Contains(labels, value) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// What the scheduler decides about gangs can be seen at its metrics endpoint.
func TestMetricsTellOfGangs(t *testing.T) {
	before := make(map[[2]string]float64)
	want := map[[2]string]float64{
		{"lockstep_scheduler_gang_wait_seconds", ""}:               1,
		{"lockstep_scheduler_decision_duration_seconds", "placed"}: 1,
		{"lockstep_scheduler_decision_duration_seconds", "waits"}:  1,
		{"lockstep_scheduler_shortfalls_total", "fleet too small"}: 1,
		{"lockstep_scheduler_placement_gap_ratio", ""}:             1,
		{"lockstep_scheduler_placement_domains", "clique"}:         1,
		{"lockstep_scheduler_placement_domains", "node"}:           1,
	}
	for metric := range want {
		before[metric] = counted(t, metric[0], metric[1])
	}
	c := newCluster(t, cliques(2, 4))
	group, members := gang("fits", 4, "clique")
	c.add(t, group, members)
	c.waitBound(t, members)
	large, tooMany := gang("large", 5, "clique")
	c.add(t, large, tooMany)
	c.waitRejected(t, "large")
	for metric, n := range want {
		if got := counted(t, metric[0], metric[1]) - before[metric]; got < n {
			t.Errorf("%s of %q went up by %v, want %v", metric[0], metric[1], got, n)
		}
	}
	if got := counted(t, "lockstep_scheduler_parked_gangs", ""); got != 1 {
		t.Errorf("%v gangs are parked, want one", got)
	}
	if got := counted(t, "lockstep_scheduler_largest_placeable_members", "clique"); got != 4 {
		t.Errorf("a clique takes %v members like the last gang's, want 4", got)
	}
}
