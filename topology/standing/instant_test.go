package standing_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/topology/standing"
)

// The interval of a start is parsed again, and is no part of an Event's message.
func TestStart(t *testing.T) {
	start := standing.Start{Low: "2026-11-24T10:00:00Z", Middle: "2026-11-24T12:00:00Z", High: "2026-11-24T16:00:00Z"}
	message := "no room" + start.String()
	if got, ok := standing.StartIn(message); got != start || !ok {
		t.Errorf("%q says %+v, %t", message, got, ok)
	}
	if got := standing.WithoutInstants(message); got != "no room" {
		t.Errorf("without instants it says %q", got)
	}
	if got := standing.InstantIn(message); got != "" {
		t.Errorf("a place is free at %q", got)
	}
	if _, ok := standing.StartIn("no room"); ok {
		t.Error("there is an interval in a message without one")
	}
}
