package live_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/scheduler/reservations"
	"github.com/lockstep-project/lockstep/simulator/explain/live"
)

// serve answers as a scheduler's secure port does.
func serve(t *testing.T, status int, answer any) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != reservations.Path || r.Header.Get("Authorization") != "Bearer secret" {
			status = http.StatusForbidden
		}
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestReservationsAt_ReadsTheEntry(t *testing.T) {
	list := reservations.List{
		Items: []reservations.Reservation{{Owner: "team/large", Reason: "head", Nodes: []string{"n0"}}},
	}
	s := serve(
		t,
		http.StatusOK,
		map[string]any{reservations.Entry: list, "componentconfig": map[string]any{"kind": "x"}},
	)
	got, err := live.ReservationsAt(t.Context(), &rest.Config{Host: "https://elsewhere", BearerToken: "secret"}, s.URL)
	if err != nil || len(got.Items) != 1 || got.Items[0].Owner != "team/large" {
		t.Errorf("it lists %+v, error %v", got, err)
	}
}

// Lockstep may be installed in another namespace. Its lease is looked for there.
func TestReservations_AskInTheNamespace(t *testing.T) {
	const held = "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases/lockstep-scheduler"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != held {
			t.Errorf("it asks for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(
			[]byte(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": ""}}`),
		)
	}))
	t.Cleanup(s.Close)
	_, err := live.Reservations(t.Context(), &rest.Config{Host: s.URL}, "gpu-system")
	if !errors.Is(err, live.ErrNoScheduler) || !strings.Contains(err.Error(), "gpu-system") {
		t.Errorf("error is %v", err)
	}
}

// An unusable address is refused with the remedy, and a token is never sent to another machine.
func TestReservationsAt_Refuses(t *testing.T) {
	cluster := &rest.Config{BearerToken: "secret"}
	if _, err := live.ReservationsAt(
		t.Context(),
		cluster,
		"https://192.0.2.1:10259",
	); !errors.Is(
		err,
		live.ErrNotLoopback,
	) {
		t.Errorf("error is %v", err)
	}
	if _, err := live.ReservationsAt(
		t.Context(),
		cluster,
		"http://127.0.0.1:10259",
	); !errors.Is(
		err,
		live.ErrNotLoopback,
	) {
		t.Errorf("error is %v", err)
	}
	other := serve(t, http.StatusOK, map[string]any{"componentconfig": map[string]any{}})
	if _, err := live.ReservationsAt(
		t.Context(),
		cluster,
		other.URL,
	); err == nil ||
		!strings.Contains(err.Error(), "no reservations") {
		t.Errorf("error is %v", err)
	}
	if _, err := live.ReservationsAt(
		t.Context(),
		&rest.Config{},
		other.URL,
	); err == nil ||
		!strings.Contains(err.Error(), "/configz") {
		t.Errorf("error is %v", err)
	}
}
