// Package recovery measures the time for which a large job is without one of its ranks when a node is lost, on a
// running cluster with the shipped profile, client limits and controllers: from the taint on the node to the binding of
// the rank that takes the place of the lost one. Kubelets' grace, which decides when a node counts as lost, is before
// the taint; the grace periods of pods are 0.
package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// Plan holds the parameters of a measurement.
type Plan struct {
	// Ranks is the size of the job, one rank on each node. The fleet must have a tenth more nodes.
	Ranks int
	// Losses is the number of nodes that are lost for each figure, one after the other; Restarts the same for a job
	// whose ranks all start again.
	Losses, Restarts int
	// Accelerators is the number of nvidia.com/gpu that a rank takes: all that a node has.
	Accelerators int64
	// Say receives each result as one line.
	Say func(string)
	// Clock is the wall clock.
	Clock clock.Clock
}

// Loss is the cost of one lost node.
type Loss struct {
	// Evicted is the time from the taint until the lost rank begins to leave, which is kube-controller-manager's.
	Evicted time.Duration
	// Made is the time from then until the Job has made another rank: the end of the lost one, and the Job's backoff.
	Made time.Duration
	// Bound is the time from then until that rank has its node, for a job that starts again as a whole all ranks.
	Bound time.Duration
}

// Ours is the control plane's share: all but the end of the lost rank and the Job's backoff.
func (l Loss) Ours() time.Duration { return l.Evicted + l.Bound }

// Result holds the costs of the losses of one scene.
type Result struct {
	Scene  string
	Ranks  int
	Losses []Loss
	// Within bounds the control plane's share, 0 for not at all.
	Within time.Duration
}

// Quantile returns the share of the losses below which a part of them is, such as 0.99.
func (r Result) Quantile(part float64, of func(Loss) time.Duration) time.Duration {
	all := make([]time.Duration, len(r.Losses))
	for i, l := range r.Losses {
		all[i] = of(l)
	}
	slices.Sort(all)
	return all[min(int(part*float64(len(all))), len(all)-1)]
}

// Measure plays the scenes in turn.
func Measure(ctx context.Context, c *cluster.Cluster, plan Plan) ([]Result, error) {
	s, err := newStage(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, scene := range scenes(plan) {
		plan.Say(fmt.Sprintf("%d ranks, %s", plan.Ranks, scene.name))
		result, err := s.play(ctx, scene)
		if err != nil {
			return nil, fmt.Errorf("%d ranks, %s: %w", plan.Ranks, scene.name, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// scene is a job, the load beside it, and the number of nodes that it loses.
type scene struct {
	name string
	// policy is the value of lockstep.dev/on-disruption.
	policy string
	// full is set if gangs of lower priority have all nodes that the job has not.
	full   bool
	losses int
	within time.Duration
}

func scenes(plan Plan) []scene {
	return []scene{
		{name: "one rank replaced, nodes are free", policy: "replace", losses: plan.Losses, within: time.Second},
		{
			name:   "one rank replaced, a gang has to leave",
			policy: "replace",
			full:   true,
			losses: plan.Losses,
			within: 3 * time.Second,
		},
		{name: "all ranks start again", policy: "restart", losses: plan.Restarts},
	}
}

// play submits the job and the load beside it, and takes nodes from the job.
func (s *stage) play(ctx context.Context, of scene) (Result, error) {
	result := Result{Scene: of.name, Ranks: s.plan.Ranks, Within: of.within}
	if err := s.submit(ctx, of); err != nil {
		return result, err
	}
	again := 1
	if of.policy == "restart" {
		again = s.plan.Ranks
	}
	for i := range of.losses {
		rank := i * 37 % s.plan.Ranks
		loss, err := s.lose(ctx, rank, again)
		if err != nil {
			return result, fmt.Errorf("losing the node of rank %d: %w", rank, err)
		}
		result.Losses = append(result.Losses, loss)
		if err := s.settle(ctx); err != nil {
			return result, err
		}
	}
	return result, s.clear(ctx)
}
