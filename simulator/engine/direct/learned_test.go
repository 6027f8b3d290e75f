package direct_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// Ten jobs of a tenant have taken a minute. One that promises no end passes a gang that waits for half an hour, since such jobs end in time; without
// what was learned, it waits.
func TestOptions_Learns(t *testing.T) {
	s := whole(t, 2)
	for i := range 10 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-%d", i), 1, 100*i, 60, 0))
	}
	s.Jobs = append(s.Jobs,
		comes("long", 1, 2000, 1800, 1800),
		comes("gang", 2, 2010, 600, 600),
		comes("tune-10", 1, 2100, 60, 0))
	for learns, want := range map[bool]string{false: "2100 tune-10 refused", true: "2100 tune-10 started [1]"} {
		if l := perform(t, s, direct.Options{Learns: learns}); !slices.Contains(l.lines, want) {
			t.Errorf("learned %t: want %q in\n%s", learns, want, strings.Join(l.lines[30:], "\n"))
		}
	}
}
