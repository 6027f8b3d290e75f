package direct_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// Units that end in one second free their nodes one by one, and a job that needs few of them may be first. With ends at
// one instant the large one gets them all.
func TestRun_EndsWithinASecond(t *testing.T) {
	at := func(j direct.Job, past time.Duration) direct.Job {
		j.Past = past
		return j
	}
	for name, c := range map[string]struct {
		first, second time.Duration
		want          string
	}{
		"apart": {200 * time.Millisecond, 700 * time.Millisecond, `
			0.2 first arrived
			0.2 first started [0]
			0.7 second arrived
			0.7 second started [1]
			1 large arrived
			1 large refused
			2 small arrived
			2 small refused
			10.2 first ended
			10.2 small started [0]
			10.7 second ended
			13.2 small ended
			13.2 large started [0 1]
			18.2 large ended`},
		"together": {200 * time.Millisecond, 200 * time.Millisecond, `
			0.2 first arrived
			0.2 second arrived
			0.2 first started [0]
			0.2 second started [1]
			1 large arrived
			1 large refused
			2 small arrived
			2 small refused
			10.2 first ended
			10.2 second ended
			10.2 large started [0 1]
			15.2 large ended
			15.2 small started [0]
			18.2 small ended`},
	} {
		t.Run(name, func(t *testing.T) {
			scene := fleet(t, 2, 2)
			scene.Jobs = []direct.Job{
				at(job("first", 1, 8, 0, 10), c.first), at(job("second", 1, 8, 0, 10), c.second),
				job("large", 2, 8, 1, 5), job("small", 1, 8, 2, 3),
			}
			want := strings.TrimSpace(strings.ReplaceAll(c.want, "\t", ""))
			if got := play(t, scene, direct.Options{Discipline: direct.Greedy}).String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Time never runs backwards, and each job runs for its time, whatever the parts of seconds at which jobs arrive.
func TestRun_PartsOfSeconds(t *testing.T) {
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 1))
		scene := fleet(t, 4, 4)
		for i := range 20 {
			j := important(
				job(fmt.Sprint("job", i), 1+chance.IntN(4), 8, chance.Int64N(60), 1+chance.Int64N(20)),
				chance.Int32N(2),
			)
			j.Past, j.Grace, j.Preemptible = time.Duration(chance.Int64N(int64(time.Second))), chance.Int64N(3), true
			if chance.IntN(2) == 0 {
				j.Promises = j.Runs + chance.Int64N(10)
			}
			scene.Jobs = append(scene.Jobs, j)
		}
		var last time.Duration
		began, ran := make(map[int]time.Duration), make(map[int]time.Duration)
		_, err := direct.Run(scene, direct.Options{Preempt: true}, func(e direct.Event) {
			now := time.Duration(e.At)*time.Second + e.Past
			if now < last {
				t.Fatalf("seed %d: %s after %s", seed, now, last)
			}
			last = now
			switch e.Kind {
			case direct.Started:
				began[e.Job] = now
			case direct.Ended:
				ran[e.Job] = now - began[e.Job]
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range scene.Jobs {
			if want := time.Duration(j.Runs) * time.Second; ran[i] != want {
				t.Errorf("seed %d: %s ran for %s, and needs %s", seed, j.Name, ran[i], want)
			}
		}
	}
}
