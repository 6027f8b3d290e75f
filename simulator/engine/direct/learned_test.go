package direct_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// Ten jobs of a tenant have taken a minute. One that promises no end passes a gang that waits for half an hour, since
// such jobs end in time; without learning, it waits.
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

// A tenant whose runs took a minute submits long ones under the same name, to pass a gang that waits. Those pass that
// start before the first of them has outlasted the prediction, 80 s: three of ten. Then no other does, although four
// nodes are free, until the gang's lease has spent its budget and opens.
func TestOptions_Learns_LateRunsAreTheLastToPass(t *testing.T) {
	s := whole(t, 8)
	for i := range 20 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-%d", i), 1, 100*i, 60, 0))
	}
	s.Jobs = append(s.Jobs, comes("long", 1, 3000, 1800, 1800), comes("gang", 8, 3010, 600, 600))
	for i := range 10 {
		s.Jobs = append(s.Jobs, comes(fmt.Sprintf("tune-lies-%d", 100+i), 1, 3100+40*i, 7200, 0))
	}
	l := perform(t, s, direct.Options{Learns: true})
	at := slices.IndexFunc(l.lines, func(line string) bool { return strings.Contains(line, " long ended") })
	passed := 0
	for _, line := range l.lines[:max(at, 0)] {
		if strings.Contains(line, "tune-lies") && strings.Contains(line, "started") {
			passed++
		}
	}
	if at < 0 || passed < 1 || passed > 3 {
		t.Errorf("%d pass the gang:\n%s", passed, strings.Join(l.lines[60:], "\n"))
	}
}
