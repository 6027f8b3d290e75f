package measure

import "time"

// Outcome is the result of a job.
type Outcome struct {
	// Job is its number in the scenario.
	Job        int
	ID, Tenant string
	// Class is its size class, by the name that it has in the scorecard.
	Class string
	// Accelerators is the number that it requests, Members that of its last start.
	Accelerators int64
	Members      int
	// Submit, Start and End are since the beginning: the arrival, the first start, and the final end; Never for events
	// that have not happened. Wait is the sum of its waits, of one that still waits until the end of the run.
	Submit, Start, End, Wait time.Duration
	// Duration is its run time if nothing ends it before.
	Duration time.Duration
	// Waiting is set if the job waits at the end.
	Waiting bool
	// Nodes is the number of nodes of its last start, Domains the number of domains of each level of the tree,
	// outermost first.
	Nodes   int
	Domains []int32
	// Q is the quality of that start relative to the best that was possible, above 0 to 1; 0 if it did not start or was
	// no sample.
	Q float64
	// Preemptions and Disruptions count the times that it was ended for another one, and with its nodes.
	Preemptions, Disruptions int
}

// Outcomes are those of all jobs that arrived, by their number.
func (t *Tally) Outcomes() []Outcome {
	sizes := newSizes(t.scene)
	outcomes := make([]Outcome, 0, len(t.jobs))
	for i := range t.jobs {
		j, of := &t.jobs[i], &t.scene.Jobs[i]
		if j.phase == absent {
			continue
		}
		outcomes = append(outcomes, Outcome{
			Job: i, ID: of.ID, Tenant: of.Tenant, Class: sizes.name(of), Accelerators: of.Accelerators,
			Members: int(j.members), Submit: j.submit, Start: j.first, End: j.end, Wait: t.waited(i),
			Duration: of.Duration, Waiting: j.phase == waiting, Nodes: int(j.nodes), Domains: j.domains, Q: Tidy(j.q),
			Preemptions: int(j.preempted), Disruptions: int(j.disrupted),
		})
	}
	return outcomes
}
