package bound

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Bounds are lower bounds for every scheduler, in seconds. Means are over the jobs that the scorecard counts
// (measure.FirstCounted), and assume that all of them end.
type Bounds struct {
	// JCT is the mean completion time, JCTByWork the mean in which a job counts as its accelerators times its run time.
	JCT, JCTByWork float64
	// Wait and WaitByWork are the same less run times. They bound waits and, where there are preemptions or failures,
	// waits and the time of runs that are lost together: a job that runs without result does not wait. They bound
	// nothing if Slows.
	Wait, WaitByWork float64
	// Slows is set if placements or starts make runs longer than their nominal time (scenario.Scenario.Costs).
	// Completions are later still, but a slow run is no wait.
	Slows bool
	// Makespan is the last end less the first submission, of all jobs.
	Makespan float64
}

// Of returns the bounds of a scenario. Jobs that never end by themselves count as waiting for nothing, as they do in
// the scorecard.
func Of(s *scenario.Scenario) Bounds {
	speed := float64(capacity(s))
	jobs := jobsOf(s, 0)
	if speed == 0 || len(jobs) == 0 {
		return Bounds{}
	}
	first := measure.FirstCounted(s.Jobs)
	counted := jobsOf(s, first)
	var sums struct{ submits, alone, submitsByWork, aloneByWork, weights float64 }
	for _, j := range counted {
		sums.submits += j.submit
		sums.alone += j.submit + j.runs
		sums.submitsByWork += j.weight * j.submit
		sums.aloneByWork += j.weight * (j.submit + j.runs)
		sums.weights += j.weight
	}
	ends := max(sums.alone, srpt(counted, speed), busy(counted, speed, func(job) float64 { return 1 }))
	byWork := max(sums.aloneByWork, busy(counted, speed, func(j job) float64 { return j.weight }))
	return Bounds{
		Slows:     s.Costs != nil,
		JCT:       ratio(ends-sums.submits, float64(len(counted))),
		JCTByWork: ratio(byWork-sums.submitsByWork, sums.weights),
		// Jobs that do not end are in the mean of waits.
		Wait:       ratio(ends-sums.alone, float64(len(s.Jobs)-first)),
		WaitByWork: ratio(byWork-sums.aloneByWork, sums.weights),
		Makespan:   makespan(jobs, speed),
	}
}

// Values returns the bounds by the names of measure.Definition.
func (b Bounds) Values() map[string]float64 {
	out := map[string]float64{
		"jct_seconds.mean": b.JCT, "by_gpu_hours.jct_seconds_mean": b.JCTByWork, "makespan_seconds": b.Makespan,
	}
	if !b.Slows {
		out["wait_seconds.mean"], out["by_gpu_hours.wait_seconds_mean"] = b.Wait, b.WaitByWork
	}
	return out
}

// job is a job as the one machine sees it, in seconds and accelerator-seconds.
type job struct {
	submit, runs float64
	// work is the least need of the job, weight its weight in the scorecard.
	work, weight float64
}

// capacity returns the number of accelerators that jobs may ever use.
func capacity(s *scenario.Scenario) int64 {
	var sum int64
	for node, total := range s.Ledger.Total {
		if node >= len(s.Closed) || !s.Closed[node] {
			sum += total[s.Accelerator]
		}
	}
	return sum
}

// jobsOf returns the jobs that end, from one of them on, by submission.
func jobsOf(s *scenario.Scenario, from int) []job {
	var out []job
	for i := range s.Jobs[from:] {
		of := &s.Jobs[from+i]
		if of.Duration == scenario.Forever {
			continue
		}
		out = append(out, job{
			submit: of.Submit.Seconds(), runs: of.Duration.Seconds(),
			work:   float64(least(s, of)) * of.Duration.Seconds(),
			weight: float64(of.Accelerators) * of.Duration.Seconds(),
		})
	}
	slices.SortStableFunc(out, func(a, b job) int { return cmp.Compare(a.submit, b.submit) })
	return out
}

// least returns the number of accelerators that a job holds at least: those of the members that have to start, the
// smallest ones.
func least(s *scenario.Scenario, of *scenario.Job) int64 {
	members := len(of.Gang.Members)
	start := of.Needed
	if of.Min > 0 {
		start = of.Min
	}
	if start >= members || start <= 0 {
		return of.Accelerators
	}
	holds := make([]int64, members)
	for i, m := range of.Gang.Members {
		if demand := of.Gang.Shapes[m.Shape].Demand; s.Accelerator < len(demand) {
			holds[i] = demand[s.Accelerator]
		}
	}
	slices.Sort(holds)
	var sum int64
	for _, n := range holds[:start] {
		sum += n
	}
	return sum
}

// makespan returns the longer of the last end of a job alone and the end of the work that is submitted from any instant
// on, less the first submission.
func makespan(jobs []job, speed float64) float64 {
	last, work := 0.0, 0.0
	for _, j := range slices.Backward(jobs) {
		work += j.work
		last = max(last, j.submit+j.runs, j.submit+work/speed)
	}
	return measure.Tidy(last - jobs[0].submit)
}

// srpt returns the sum of ends if the job with the least work left always has the machine. Jobs without work end when
// they end alone.
func srpt(jobs []job, speed float64) float64 {
	sum := 0.0
	left := func(w *waiting) float64 { return w.left }
	run(jobs, speed, left, func(w *waiting, _, to float64) {
		if w.left == 0 {
			sum += to
		}
	})
	return sum + idle(jobs, func(job) float64 { return 1 })
}

// busy returns the least weighted sum of mean busy times, and half of each run time beside it.
func busy(jobs []job, speed float64, weight func(job) float64) float64 {
	sum := 0.0
	for _, j := range jobs {
		if j.work > 0 {
			sum += weight(j) * j.runs / 2
		}
	}
	order := func(w *waiting) float64 { return -weight(w.job) / w.work }
	run(jobs, speed, order, func(w *waiting, from, to float64) {
		sum += weight(w.job) * (to - from) * speed / w.work * (from + to) / 2
	})
	return sum + idle(jobs, weight)
}

// idle returns the weighted sum of the ends of jobs without work.
func idle(jobs []job, weight func(job) float64) float64 {
	sum := 0.0
	for _, j := range jobs {
		if j.work == 0 {
			sum += weight(j) * (j.submit + j.runs)
		}
	}
	return sum
}

// run plays the jobs with work on the machine: the job with the least key always has it. did receives each stretch.
func run(jobs []job, speed float64, key func(*waiting) float64, did func(w *waiting, from, to float64)) {
	queue := &queue{key: key}
	now := 0.0
	next := slices.DeleteFunc(slices.Clone(jobs), func(j job) bool { return j.work == 0 })
	for number := 0; len(next) > 0 || queue.Len() > 0; {
		if queue.Len() == 0 {
			now = max(now, next[0].submit)
		}
		for len(next) > 0 && next[0].submit <= now {
			heap.Push(queue, &waiting{job: next[0], left: next[0].work, number: number})
			number++
			next = next[1:]
		}
		w := queue.all[0]
		end := now + w.left/speed
		if len(next) > 0 && next[0].submit < end {
			w.left -= (next[0].submit - now) * speed
			did(w, now, next[0].submit)
			now = next[0].submit
			heap.Fix(queue, 0)
			continue
		}
		heap.Pop(queue)
		w.left = 0
		did(w, now, end)
		now = end
	}
}

// waiting is a job that was submitted and has work left.
type waiting struct {
	job

	left   float64
	number int
}

// queue is a heap of waiting jobs by their key.
type queue struct {
	all []*waiting
	key func(*waiting) float64
}

func (q *queue) Len() int { return len(q.all) }

func (q *queue) Less(i, j int) bool {
	a, b := q.all[i], q.all[j]
	return cmp.Or(cmp.Compare(q.key(a), q.key(b)), cmp.Compare(a.number, b.number)) < 0
}

func (q *queue) Swap(i, j int) { q.all[i], q.all[j] = q.all[j], q.all[i] }

// Push is heap.Interface's.
func (q *queue) Push(x any) {
	if w, ok := x.(*waiting); ok {
		q.all = append(q.all, w)
	}
}

// Pop is heap.Interface's.
func (q *queue) Pop() any {
	last := len(q.all) - 1
	w := q.all[last]
	q.all = q.all[:last]
	return w
}

// ratio returns a/b, 0 if there is nothing to divide by, and never less than 0: sums of floats may miss it.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return measure.Tidy(max(a/b, 0))
}
