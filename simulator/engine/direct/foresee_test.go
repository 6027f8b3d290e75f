package direct_test

import (
	"fmt"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// Jobs of a tenant take ten minutes. The third of three that need the whole fleet starts when two have run: after
// twenty minutes, and as long as the first has run already, less.
func TestOptions_Foresees(t *testing.T) {
	s := whole(t, 1)
	for i := range 20 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-%d", i), 1, 1000*i, 600, 0))
	}
	for i := range 3 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-%d", 100+i), 1, 50_000+60*i, 600, 0))
	}
	var told []direct.Foreseen
	perform(t, s, direct.Options{Learns: true, Foresees: direct.Foresees{
		Every: 1, Tell: func(f direct.Foreseen) { told = append(told, f) },
	}})
	if len(told) != 2 {
		t.Fatalf("forecasts: %+v", told)
	}
	for i, f := range told {
		wait := int64(540 * (i + 1)) // each arrives a minute after the one before
		if f.Outlook.Backlog < wait*8/10 || f.Outlook.Backlog > wait*12/10 {
			t.Errorf("%s waits %d s; the outlook at %d was %+v", s.Jobs[f.Job].ID, wait, f.At, f.Outlook)
		}
		if oldest := int64(60 * i); f.Outlook.Oldest != oldest {
			t.Errorf("%s finds a wait of %d s, not of %d s", s.Jobs[f.Job].ID, f.Outlook.Oldest, oldest)
		}
	}
}
