package contention_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
)

// Where ends are known and places may idle, the promised start of the head holds to the second from the instant at
// which it is due, whatever arrives. Before, entities that arrive until then and are due earlier may precede it. So a
// promise is broken by no more than the entities that arrive within the slack.
func TestPromise_KeptFromWhenItIsDue(t *testing.T) {
	policy := contention.DefaultPolicy()
	policy.Discipline = contention.Promise()
	policy.Budget, policy.Horizon, policy.CeilingPart = 0, 0, 0
	kept, early := 0, 0
	for seed := range uint64(scenes(t) / 4) {
		scene := punctualScene(seed)
		q := recorded{scene: scene, slack: policy.Slack, starts: make(map[string]int64)}
		moves := end(t, scene, policy).Moves
		for _, m := range moves {
			if m.Kind == contentiontest.Starts {
				q.starts[m.Job] = m.At
			}
		}
		for _, m := range moves {
			if m.Kind != contentiontest.Leases || m.Instant == contention.None || q.first(m.At) != m.Job {
				continue
			}
			late := q.starts[m.Job] > m.Instant
			if due := q.due(m.Job); m.At < due {
				early++
			} else if kept++; late {
				t.Errorf(
					"seed %d: %s is due at %s, is promised %s at %s and starts at %s",
					seed,
					m.Job,
					contentiontest.Clock(due),
					contentiontest.Clock(m.Instant),
					contentiontest.Clock(m.At),
					contentiontest.Clock(q.starts[m.Job]),
				)
			}
		}
	}
	if kept < scenes(t)/4 {
		t.Errorf("only %d promises were made to entities that are due", kept)
	}
	t.Logf("%d promises to entities that are due are kept; %d were made before", kept, early)
}

// recorded is a scene with when each job started.
type recorded struct {
	scene  contentiontest.Scene
	slack  int64
	starts map[string]int64
}

func (q recorded) due(name string) int64 {
	j := q.scene.Jobs[slices.IndexFunc(q.scene.Jobs, func(j contentiontest.Job) bool { return j.Name == name })]
	return j.Arrives + j.Says*q.slack/100
}

// first returns which of the jobs that wait at an instant is due first; of equal ones, which arrived and is named
// first.
func (q recorded) first(at int64) string {
	var waiting []contentiontest.Job
	for _, j := range q.scene.Jobs {
		if j.Arrives <= at && q.starts[j.Name] > at {
			waiting = append(waiting, j)
		}
	}
	if len(waiting) == 0 {
		return ""
	}
	return slices.MinFunc(waiting, func(a, b contentiontest.Job) int {
		return cmp.Or(
			cmp.Compare(q.due(a.Name), q.due(b.Name)),
			cmp.Compare(a.Arrives, b.Arrives),
			cmp.Compare(a.Name, b.Name),
		)
	}).Name
}

// punctualScene draws jobs of one priority that end exactly when they say.
func punctualScene(seed uint64) contentiontest.Scene {
	r := rand.New(rand.NewPCG(seed, 3))
	s := contentiontest.Scene{Cliques: 1 + r.IntN(2), Nodes: 2 + r.IntN(5), GPUs: []int{1, 4, 8}[r.IntN(3)], CPUs: 16}
	for i := range 15 + r.IntN(30) {
		j := randomJob(r, s, fmt.Sprintf("j%02d", i))
		j.Runs = int64(10+r.IntN(600)) * minute
		j.Says, j.Certainty, j.Priority, j.Min, j.Preemptible = j.Runs, contention.Certain, 0, 0, false
		s.Jobs = append(s.Jobs, j)
	}
	return s
}
