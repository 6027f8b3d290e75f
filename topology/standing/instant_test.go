package standing_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/topology/standing"
)

// The interval of a start is read back, and is no part of what an Event says.
func TestStartsBetween(t *testing.T) {
	const low, high, middle = "2026-11-24T10:00:00Z", "2026-11-24T16:00:00Z", "2026-11-24T12:00:00Z"
	message := "no room" + standing.StartsBetween(low, high, middle)
	gotLow, gotHigh, gotMiddle, ok := standing.StartsIn(message)
	if gotLow != low || gotHigh != high || gotMiddle != middle || !ok {
		t.Errorf("%q says %s, %s and %s, %t", message, gotLow, gotHigh, gotMiddle, ok)
	}
	if got := standing.WithoutInstants(message); got != "no room" {
		t.Errorf("without instants it says %q", got)
	}
	if got := standing.InstantIn(message); got != "" {
		t.Errorf("a place is free at %q", got)
	}
	if _, _, _, ok := standing.StartsIn("no room"); ok {
		t.Error("there is an interval in a message without one")
	}
}
