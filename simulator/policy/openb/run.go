package openb

// Result is a policy's result for a scene.
type Result struct {
	Policy string
	Seed   uint64
	// Tie is the policy's choice among nodes with equal scores.
	Tie Tie
	// Arrived is the number of pods that arrived, Placed the number that there was room for.
	Arrived, Placed int
	// curve is a sample for each per cent of the cluster's GPUs that pods asked for, beginning with none.
	curve []Sample
}

// Event is the arrival of a pod.
type Event struct {
	// Pod is the name of the pod, or of the one that it is a copy of.
	Pod string
	// Node is its node; it has no name if the pod fits nowhere and was dropped.
	Node string
	// GPUs are the indices of the GPUs that it was given, in ascending order.
	GPUs []int
}

// Run plays a scene with the policy of a name, one of Policies, and reports events as they happen; emit may be nil.
// Each arriving pod is placed where the policy chooses, or dropped if it fits nowhere. A name that no policy has is bad
// input.
func Run(scene Scene, policy string, emit func(Event)) (Result, error) {
	if emit == nil {
		emit = func(Event) {}
	}
	w := newWorld(&scene)
	chance := scene.chance(streamPolicy)
	p, err := newPolicy(policy, w.fragments, chance)
	if err != nil {
		return Result{}, err
	}
	result := Result{Policy: policy, Seed: scene.seed, Tie: p.Tie(), Arrived: len(scene.arrivals)}
	b := newBoard(w, scene.shapes, p, chance)
	c := newCurve(scene.capacity, w.fragments.pods)
	c.add(0, w)
	for _, pod := range scene.arrivals {
		event := Event{Pod: scene.pods[pod].Name}
		if node, gpus := b.arrive(scene.of[pod]); node != nowhere {
			event.Node, event.GPUs = scene.nodes[node].Name, gpus
			result.Placed++
		}
		emit(event)
		c.add(scene.shape(pod).asks(), w)
	}
	result.curve = c.samples()
	return result, nil
}

// At is the sample when pods had asked for so many per cent of the cluster's GPUs, of 0 to 130; beyond, it is the
// nearest.
func (r Result) At(percent int) Sample {
	return r.curve[min(max(percent, 0), len(r.curve)-1)]
}

// Marks are the percentages of arrivals at which allocations are reported.
func Marks() []int {
	return []int{80, 90, 95, 100, 110, 130}
}
