package contention_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// shrinkingScene draws a scene in which half of the gangs can continue with fewer members.
func shrinkingScene(seed uint64) contentiontest.Scene {
	r := rand.New(rand.NewPCG(seed, 7))
	s := randomScene(seed)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.Members > 1 && r.IntN(2) == 0 {
			j.Min, j.Elastic, j.Preemptible = 1+r.IntN(j.Members-1), true, true
			j.Saves = int64(r.IntN(3)) * 5 * minute
		}
	}
	return s
}

// Elastic gangs give members and take them back, and all invariants hold: no job waits that would fit, no gang is left
// with fewer members than it needs, and in the end all jobs have run.
func TestParts_KeepTheInvariants(t *testing.T) {
	shrunk, grown, drawn := 0, 0, scenes(t)
	for seed := range uint64(drawn) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			for _, log := range [][]string{
				played(t, shrinkingScene(seed)), end(t, shrinkingScene(seed), unpriced()).Log,
			} {
				s, g := sizes(log)
				shrunk, grown = shrunk+s, grown+g
			}
		})
	}
	t.Logf("%d times a gang shrank, %d of these grew again", shrunk, grown)
	if shrunk < drawn/5 || grown < drawn/25 {
		t.Errorf("%d gangs shrank and %d grew again: the scenes show nothing", shrunk, grown)
	}
}

// sizes returns the number of times that gangs shrank, and the number of these gangs that grew later.
func sizes(log []string) (shrunk, grown int) {
	small := make(map[string]bool)
	for _, line := range log {
		words := strings.Fields(line)
		switch {
		case strings.Contains(line, " shrinks to "):
			shrunk++
			small[words[1]] = true
		case strings.Contains(line, " starts ") && small[words[1]]:
			grown++
			delete(small, words[1])
		case strings.Contains(line, " leaves"), strings.Contains(line, " ends"):
			delete(small, words[1])
		}
	}
	return shrunk, grown
}
