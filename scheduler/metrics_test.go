package scheduler_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// The scheduler's decisions about gangs can be seen at its metrics endpoint.
func TestMetrics_CountGangDecisions(t *testing.T) {
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
		before[metric] = schedulertest.Metric(t, metric[0], metric[1])
	}
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4))
	group, members := schedulertest.Gang("fits", 4, "clique")
	c.Create(t, group, members)
	c.WaitBound(t, members)
	large, tooMany := schedulertest.Gang("large", 5, "clique")
	c.Create(t, large, tooMany)
	c.WaitRejected(t, "large")
	for metric, n := range want {
		if got := schedulertest.Metric(t, metric[0], metric[1]) - before[metric]; got < n {
			t.Errorf("%s of %q went up by %v, want %v", metric[0], metric[1], got, n)
		}
	}
	if got := schedulertest.Metric(t, "lockstep_scheduler_parked_gangs", ""); got != 1 {
		t.Errorf("%v gangs are parked, want one", got)
	}
	if got := schedulertest.Metric(t, "lockstep_scheduler_largest_placeable_members", "clique"); got != 4 {
		t.Errorf("a clique takes %v members like the last gang's, want 4", got)
	}
}

// A tenant may require any label key that nodes carry: it makes no metric of its own.
func TestMetrics_BoundLevels(t *testing.T) {
	nodes := schedulertest.Cliques(2, 4)
	for _, node := range nodes {
		node.Labels["example.com/tenants-own"] = "a"
	}
	other := schedulertest.Metric(t, "lockstep_scheduler_placement_domains", "other")
	c := schedulertest.NewCluster(t, nodes)
	group, members := schedulertest.Gang("train", 4, "example.com/tenants-own")
	c.Create(t, group, members)
	c.WaitBound(t, members)
	if got := schedulertest.Metric(t, "lockstep_scheduler_placement_domains", "other") - other; got != 1 {
		t.Errorf("the tenant's level counts %v times as other", got)
	}
	if got := schedulertest.Metric(t, "lockstep_scheduler_placement_domains", "tenants-own"); got != 0 {
		t.Errorf("the tenant's level has a metric of its own")
	}
}
