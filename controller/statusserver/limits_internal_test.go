package statusserver

import (
	"strconv"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
)

// One address claims more jobs than are remembered, without an account. The limit of the address refuses all but a
// hundred of them, and only those take memory: the limit on another address's attempts for one job is not forgotten
// meanwhile.
func TestLimits_ForgedClaimsAreNotRemembered(t *testing.T) {
	l := newLimits(6*remembered, 6*2*remembered, clocktesting.NewFakePassiveClock(ten()))
	tenacious := stranger{source: "10.0.0.1", namespace: "team-a", name: "train"}
	for range strangerBurst {
		if _, ok := l.admit(tenacious); !ok {
			t.Fatal("refused within the limit")
		}
	}
	admitted := 0
	for i := range 2 * remembered {
		if _, ok := l.admit(stranger{source: "10.0.0.2", namespace: "team-a", name: strconv.Itoa(i)}); ok {
			admitted++
		}
	}
	if admitted != sourceBurst {
		t.Errorf("%d claims of one address were admitted, want %d", admitted, sourceBurst)
	}
	if _, ok := l.admit(tenacious); ok {
		t.Error("the limit on another address's attempts was forgotten: forged claims are remembered")
	}
}
