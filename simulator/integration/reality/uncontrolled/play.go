package uncontrolled

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

// scene returns the plan as the simulator plays it, with starts that take as long as was measured
// (cost.Settings.Startup).
func scene(machines fleet.Fleet, plan Plan, startup Startup) (*scenario.Scenario, error) {
	t := trace.Trace{Name: fmt.Sprintf("uncontrolled-%d", plan.Seed), Source: "synthetic", Synthetic: true}
	for _, g := range plan.Gangs {
		j := g.Job()
		j.Submit, j.Duration, j.Estimate = g.Submit, g.RunTime, g.Deadline
		t.Jobs = append(t.Jobs, j)
	}
	published, err := importer.New(machines, t, scenario.Options{Costs: cost.Settings{Startup: unit}})
	if err != nil {
		return nil, fmt.Errorf("making the scene of plan %d: %w", plan.Seed, err)
	}
	const several = 2
	factor := startup.Factor(published.Costs.Assembly(several))
	s, err := importer.New(
		machines,
		t,
		scenario.Options{Seed: plan.Seed, Exact: true, Costs: cost.Settings{Startup: factor}},
	)
	if err != nil {
		return nil, fmt.Errorf("making the scene of plan %d: %w", plan.Seed, err)
	}
	return s, nil
}

// Play returns the course of a plan in the simulator. It decides and binds at one instant; GPUs are counted from the
// instant of the binding, which follows by Startup.Handover.
func Play(
	ctx context.Context, player engine.Engine, machines fleet.Fleet, plan Plan, startup Startup,
) (Course, error) {
	s, err := scene(machines, plan, startup)
	if err != nil {
		return Course{}, err
	}
	w := newWatch(s, plan, startup.Handover())
	if err := player.Run(ctx, s, w); err != nil {
		return Course{}, fmt.Errorf("playing plan %d: %w", plan.Seed, err)
	}
	for i := range w.began {
		w.stop(i, never)
	}
	return w.course, nil
}

// replays is the number of lists with Plan.Jitter that are played: with a deviation of 5 % from one to the other the
// mean is within 1 % of that of all.
const replays = 20

// Predict returns the simulator's prediction for a plan: the figures of replays with Plan.Jitter.
func Predict(
	ctx context.Context, player engine.Engine, machines fleet.Fleet, plan Plan, startup Startup,
) ([]Figures, error) {
	var out []Figures
	for number := range uint64(replays) {
		course, err := Play(ctx, player, machines, plan.Jitter(number), startup)
		if err != nil {
			return nil, err
		}
		out = append(out, course.Figures())
	}
	return out, nil
}

// watch collects a course from the events of an engine.
type watch struct {
	scene  *scenario.Scenario
	gangs  []rerun.Gang
	course Course
	// at is the plan's number of each job, began the instant of the run of each gang, never for none.
	at    []int
	began []time.Duration
	// handover is the time from a start to its binding.
	handover time.Duration
}

func newWatch(s *scenario.Scenario, plan Plan, handover time.Duration) *watch {
	w := &watch{
		scene:    s,
		gangs:    plan.Gangs,
		handover: handover,
		course:   Course{Fleet: float64(s.GPUs()) * Window.Seconds()},
	}
	numbers := make(map[string]int)
	for i, g := range plan.Gangs {
		numbers[g.Name] = i
		w.course.Fates = append(w.course.Fates, awaited(g))
		w.began = append(w.began, never)
	}
	for _, j := range s.Jobs {
		w.at = append(w.at, numbers[j.ID])
	}
	return w
}

// Happens implements engine.Watcher.
func (w *watch) Happens(e engine.Event) {
	if e.Job == engine.None {
		return
	}
	i, now := w.at[e.Job], e.At
	fate := &w.course.Fates[i]
	switch e.Kind {
	case engine.Started:
		w.began[i] = now
		if fate.Started == never {
			fate.Started = now
			for _, node := range e.Nodes {
				fate.Nodes = append(fate.Nodes, w.scene.Ledger.Tree.Node(node))
			}
		}
	case engine.Ended:
		fate.Ended = now
		w.stop(i, now)
	case engine.Preempted, engine.Disrupted:
		w.course.Evictions++
		w.stop(i, now)
	default:
	}
}

// stop adds the capacity that a running gang held, and notes that the gang no longer runs.
func (w *watch) stop(i int, now time.Duration) {
	if from := w.began[i]; from != never {
		w.course.Held += held(w.gangs[i].Members*w.gangs[i].GPUs, from+w.handover, now)
	}
	w.began[i] = never
}

// Decides implements engine.Watcher.
func (*watch) Decides(engine.Decision) {}
