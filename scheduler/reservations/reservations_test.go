package reservations_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/reservations"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// The endpoint lists the queue's leases at the time of the read, and the metrics give their age.
func TestServe_ListsLeases(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	queue := waiting.New(timing.Timing{Clock: clock, Beside: func(func()) {}}, contention.DefaultPolicy())
	if err := reservations.Serve(queue, clock); err != nil {
		t.Fatal(err)
	}
	queue.Restore(waiting.State{
		Machine: contention.State{Leases: []contention.Lease{
			{
				Owner:   "team/large",
				Reason:  contention.Head,
				Instant: 1_003_600,
				Firm:    true,
				Expiry:  contention.None,
				Since:   999_940,
				Budget:  contention.Budget{Granted: 7200, Idled: 3600},
			},
		}},
		Places: map[contention.ID][]waiting.EqualPlaces{"team/large": {{Nodes: []string{"n1", "n0"}}}},
	})
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, reservations.Path, http.NoBody))
	var all map[string]reservations.List
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	items := all[reservations.Entry].Items
	if len(items) != 1 || items[0].Owner != "team/large" || len(items[0].Nodes) != 2 || items[0].Nodes[0] != "n0" ||
		items[0].Expected.Unix() != 1_003_600 || items[0].IdleHours != 1 || items[0].BudgetHours != 2 {
		t.Errorf("it lists %+v", items)
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			seen[f.GetName()] += m.GetGauge().GetValue()
		}
	}
	if seen["lockstep_scheduler_reservation_age_seconds"] != 60 ||
		seen["lockstep_scheduler_reservation_idle_accelerator_seconds"] != 3600 {
		t.Errorf("metrics are %v", seen)
	}
}
