package measure

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// slack is the least run time for slowdowns; shorter jobs count with it: the tau of bounded slowdown.
const slack = time.Minute

// Scorecard returns the results of the run until now; wall is the time that it took, harness included. It may be asked
// for at any instant, and changes nothing.
func (t *Tally) Scorecard(wall time.Duration) Scorecard {
	s := t.scene
	spent, unended := t.untilNow()
	card := Scorecard{
		Scheduler:   t.header.Scheduler,
		Engine:      t.header.Engine,
		Commit:      t.header.Commit,
		ConfigHash:  t.header.ConfigHash,
		TieRule:     t.header.TieRule,
		Machine:     t.header.Machine,
		Fleet:       s.Fleet,
		Trace:       s.Trace,
		Seed:        s.Options.Seed,
		Source:      s.Source,
		Synthetic:   s.Synthetic,
		Load:        cmp.Or(s.Options.Load, 1),
		Estimates:   s.Options.Estimates,
		Nodes:       s.Ledger.Len(),
		GPUs:        s.GPUs(),
		Notes:       slices.Clone(s.Notes),
		Window:      Window{From: t.window.from.Seconds(), To: min(t.window.to, t.now).Seconds(), Rule: t.window.rule},
		Quality:     t.quality.quality(),
		Utilization: t.use.utilization(),
		Goodput:     t.use.goodput(unended),
		Costs:       t.costs(spent),
		Violations:  t.violations,
		Pods:        Pods{Placed: t.pods},
	}
	card.Fragmentation, card.Largest = t.spaces()
	card.Preemption = t.preemption
	card.Preemption.GPUHours = Tidy(card.Preemption.GPUHours)
	card.Preemption.DisruptedGPUHours = Tidy(card.Preemption.DisruptedGPUHours)
	t.count(&card)
	t.sumJobs(&card)
	t.speed(&card, wall)
	return card
}

// count counts the jobs of the whole run.
func (t *Tally) count(card *Scorecard) {
	first, last := Never, time.Duration(0)
	for i := range t.jobs {
		j := &t.jobs[i]
		if j.phase == absent {
			continue
		}
		card.Gangs.Submitted++
		if first == Never || j.submit < first {
			first = j.submit
		}
		if j.first != Never {
			card.Gangs.Placed++
		}
		if j.end != Never {
			card.Gangs.Finished++
			last = max(last, j.end)
		}
		if j.phase == waiting {
			card.Gangs.Pending++
		}
	}
	card.Makespan = max(last-max(first, 0), 0).Seconds()
}

// speed computes the costs of the decisions.
func (t *Tally) speed(card *Scorecard, wall time.Duration) {
	placed, refused := &t.decisions.placed, &t.decisions.refused
	all := latencies{counts: slices.Clone(placed.counts)}
	for class, count := range refused.counts {
		if class == len(all.counts) {
			all.counts = append(all.counts, 0)
		}
		all.counts[class] += count
	}
	all.count, all.most = placed.count+refused.count, max(placed.most, refused.most)
	card.DecisionMS, card.DecisionMSPlaced, card.DecisionMSRefused = all.latency(), placed.latency(), refused.latency()
	starts := 0
	for i := range t.jobs {
		starts += int(t.jobs[i].starts)
	}
	card.Throughput = Throughput{
		GangsPerSecond: ratio(float64(starts), wall.Seconds()), PodsPerSecond: ratio(float64(t.pods), wall.Seconds()),
		WallSeconds: Tidy(wall.Seconds()), DecidingSeconds: Tidy((placed.sum + refused.sum).Seconds()),
	}
}

// jobTimes are the metrics of some jobs.
type jobTimes struct {
	waits, jcts, slowdowns []float64
	byWork                 struct{ wait, jct, slowdown weighted }
	jobs, pending          int
	work                   float64
	q                      []float64
}

// sumJobs sums the jobs of the window up: all of them, and by size class.
func (t *Tally) sumJobs(card *Scorecard) {
	all, sizes := jobTimes{}, newSizes(t.scene)
	classes := make([]jobTimes, len(SizeClasses()))
	for i := range t.jobs[t.window.first:] {
		if job := t.window.first + i; t.jobs[job].phase != absent {
			t.addTimes(&all, job)
			t.addTimes(&classes[sizes.of(&t.scene.Jobs[job])], job)
		}
	}
	card.Window.Jobs = all.jobs
	card.Wait, card.JCT, card.BoundedSlowdown = times(all.waits), times(all.jcts), slowdown(all.slowdowns)
	card.ByGPUHours = Weighted{
		Wait: all.byWork.wait.mean(), JCT: all.byWork.jct.mean(), BoundedSlowdown: all.byWork.slowdown.mean(), Q: 1,
	}
	if t.quality.byWork.weight > 0 {
		card.ByGPUHours.Q = t.quality.byWork.mean()
	}
	card.Classes = []Class{}
	for i, name := range SizeClasses() {
		if c := &classes[i]; c.jobs > 0 {
			of := Class{
				Name:     name,
				Jobs:     c.jobs,
				Pending:  c.pending,
				GPUHours: Tidy(c.work),
				Wait:     times(c.waits),
				JCT:      times(c.jcts),
				MeanQ:    1,
			}
			if len(c.q) > 0 {
				of.MeanQ = mean(c.q)
			}
			card.Classes = append(card.Classes, of)
		}
	}
}

// addTimes adds the outcome of a job.
func (t *Tally) addTimes(to *jobTimes, job int) {
	j, of := &t.jobs[job], &t.scene.Jobs[job]
	wait, runs, hours := t.waited(job), of.Duration, work(of)
	to.jobs++
	to.work += hours
	to.waits = append(to.waits, wait.Seconds())
	to.byWork.wait.add(wait.Seconds(), hours)
	stays := wait + min(runs, scenario.Forever-wait)
	switch {
	case j.end != Never:
		stays = j.end - j.submit
		to.jcts = append(to.jcts, stays.Seconds())
		to.byWork.jct.add(stays.Seconds(), hours)
	case j.phase == waiting:
		to.pending++
	}
	slow := max(stays.Seconds()/max(runs, slack).Seconds(), 1)
	to.slowdowns = append(to.slowdowns, slow)
	to.byWork.slowdown.add(slow, hours)
	if j.q > 0 && len(of.Gang.Members) > 1 {
		to.q = append(to.q, j.q)
	}
}
