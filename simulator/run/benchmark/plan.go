package benchmark

import (
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
)

// entry is one comparison of the benchmark.
type entry struct {
	// Name is that of its directory, Shows its purpose.
	name, shows string
	names       simulation.Names
	// options are for all schedulers alike.
	options simulation.Options
	// schedulers play all seeds, few the first fewSeeds of them: ablations, and schedulers that differ in placement
	// only.
	schedulers, few []string
	seeds           []uint64
	// engine plays all schedulers; empty for the one that each usually has.
	engine string
}

// fewSeeds is the number of seeds that entry.few play.
const fewSeeds = 3

// all returns all schedulers of an entry.
func (e *entry) all() []string { return slices.Concat(e.schedulers, e.few) }

// seedsOf returns the seeds that a scheduler plays.
func (e *entry) seedsOf(scheduler string) []uint64 {
	if slices.Contains(e.few, scheduler) {
		return e.seeds[:min(fewSeeds, len(e.seeds))]
	}
	return e.seeds
}

// playing returns the schedulers that play a seed, in their order.
func (e *entry) playing(seed uint64) []string {
	return slices.DeleteFunc(e.all(), func(name string) bool { return !slices.Contains(e.seedsOf(name), seed) })
}

// scene is an entry before it is divided by the share of jobs that state a deadline.
type scene struct {
	entry

	// ablated lists the shares of deadlines at which the ablations of Lockstep play beside the others.
	ablated []deadlines
}

// deadlines is the share of the jobs whose owners state a deadline, and how the names of such comparisons end.
type deadlines struct {
	declared float64
	suffix   string
}

// shares returns the shares of owners who state a deadline. TrainJobs rarely do, so a comparison in which all do shows
// the best case of known ends.
func shares() []deadlines { return []deadlines{{1, ""}, {0.5, "-half"}, {0, "-none"}} }

// perfect is the variant of Lockstep that knows the end of every job.
const perfect = schedulers.Lockstep + ":perfect"

// trusting is the variant of Lockstep that differs where ends are guessed.
const trusting = schedulers.Lockstep + ":trusting"

// rigid is the variant of Lockstep that differs where gangs are elastic, unlimited the one that differs where jobs are
// trials of a sweep.
const (
	rigid     = schedulers.Lockstep + ":rigid"
	unlimited = schedulers.Lockstep + ":unlimited"
)

// divided returns the entries of a scene: one for each share of deadlines.
func (s *scene) divided() []entry {
	var out []entry
	for _, share := range shares() {
		e := s.entry
		e.name += share.suffix
		e.options.Silent = 1 - share.declared
		e.few = slices.Clone(e.few)
		e.few = append(e.few, s.variants(share)...)
		out = append(out, e)
	}
	return out
}

// variants are those of Lockstep that play with a share of deadlines.
func (s *scene) variants(share deadlines) []string {
	var out []string
	switch {
	case slices.Contains(s.ablated, share):
		out = schedulers.Variants()
	case slices.Contains(s.few, schedulers.Optimum):
		out = []string{trusting}
	default:
		out = []string{trusting, perfect} // the longest wait is measured against it
	}
	if s.options.Elastic == 0 {
		out = slices.DeleteFunc(out, func(name string) bool { return name == rigid })
	}
	out = slices.DeleteFunc(out, func(name string) bool { return name == unlimited }) // no comparison has sweeps
	if share.declared == 1 {
		out = slices.DeleteFunc(out, func(name string) bool { return name == trusting })
	}
	return out
}

// rivals are those that are compared with Lockstep on fleets and traces of any size; slurm is the plugin that sites
// with such a network run.
func rivals(slurm string) []string {
	return []string{schedulers.Lockstep, baseline.KueueBestFit, baseline.KueuePreempting, slurm, baseline.FirstFit}
}

// placements are those that differ from first-fit in their placements only.
func placements() []string {
	return []string{baseline.Random, baseline.LeastAllocated, baseline.MostAllocated}
}

// everybody lists all schedulers of the engine direct, in the order of reports.
func everybody() []string {
	return slices.Concat([]string{schedulers.Lockstep}, baseline.Names(), []string{schedulers.Optimum})
}

// withNative are those that are compared where the native scheduler can be asked, too.
func withNative() []string {
	return slices.Insert(everybody(), 1, schedulers.NativeTAS)
}

// estimated is the largest factor by which owners overstate the run times of their jobs: deadlines are one to three
// times the run time.
const estimated = 3

// upTo are the seeds from 1 to n.
func upTo(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	return seeds
}

// How many seeds comparisons have: headlines ten, others five.
const (
	headline = 10
	usual    = 5
)

// plan lists the comparisons. Loads are chosen so that jobs wait most of the time, and none waits for ever.
func plan() []entry {
	var out []entry
	for _, s := range slices.Concat(ofPhilly(), ofAcme(), ofGangs()) {
		out = append(out, s.divided()...)
	}
	out = append(out, wishing()...)
	for i := range out {
		out[i].options.Costs.Slowdown = published
	}
	return slices.Concat(small(), out, checkpointed(out), native())
}

// published is the factor of costs that are taken as they were published, in thousandths (cost.Settings).
const published = 1000

// checkpointed are comparisons that stand beside the same without checkpoints.
func checkpointed(all []entry) []entry {
	const halfAnHour = 30 * 60
	var out []entry
	for _, e := range all {
		if e.name != "c1" {
			continue
		}
		e.name += "-checkpoints"
		e.shows = "the jobs of c1 with a checkpoint every 30 minutes: compare the GPU-hours that preemption loses with those of c1"
		e.options.Costs.Checkpoint = halfAnHour
		e.few, e.seeds = []string{perfect}, e.seeds[:usual]
		out = append(out, e)
	}
	return out
}

// small are the scenes of a second.
func small() []entry {
	out := []entry{
		{
			name:       "knavigator-53",
			shows:      "53 gangs that fit perfectly, if they are taken in their order: the optimum is 270 s, nothing ever idle",
			names:      simulation.Names{Fleet: "knavigator-32", Trace: "knavigator-53"},
			options:    simulation.Options{Load: 1},
			schedulers: withNative(),
			seeds:      upTo(1),
		},
		{
			name: "fragment-then-gang", shows: "small jobs leave a hole in every node, then two gangs of 512 GPUs come",
			names:      simulation.Names{Fleet: "h100-128", Trace: "fragment-then-gang"},
			options:    simulation.Options{Load: 1, Estimates: estimated},
			schedulers: withNative(), seeds: upTo(usual),
		},
	}
	starving := scene{entry: entry{
		name:       "starving-512",
		shows:      "one gang of 512 GPUs under a stream of jobs of one GPU that asks for more than there is",
		names:      simulation.Names{Fleet: "h100-128", Trace: "starving-512"},
		options:    simulation.Options{Load: 1, Estimates: estimated},
		schedulers: rivals(baseline.SlurmTree), few: []string{schedulers.Optimum}, seeds: upTo(usual),
	}, ablated: shares()}
	service := scene{entry: entry{
		name: "service",
		shows: "one job of one GPU runs for ten days and states no deadline, a gang of all 64 nodes waits behind it, and 2,000 jobs of one" +
			" node come: a scheduler that keeps the gang's place for an end that is not known idles the fleet",
		names:   simulation.Names{Fleet: "h100-64", Trace: "service"},
		options: simulation.Options{Load: 1},
		schedulers: slices.Concat(
			rivals(baseline.SlurmTree),
			[]string{baseline.SlurmBlock, baseline.SlurmFlat},
		),
		seeds: upTo(headline),
	}, ablated: shares()}
	return slices.Concat(out, starving.divided(), service.divided())
}

func ofPhilly() []scene {
	var out []scene
	for _, c := range []struct {
		load    float64
		name    string
		shows   string
		seeds   int
		ablated []deadlines
	}{
		{1, "philly-1.0", "Microsoft's jobs on 512 GPUs, as fast as they came; 0.35 % of them have several nodes", usual, nil},
		{1.3, "philly-1.3", "the same, 1.3 times as fast", headline, shares()},
		{1.6, "philly-1.6", "the same, 1.6 times as fast: more than there is", usual, nil},
	} {
		out = append(out, scene{entry: entry{
			name:       c.name,
			shows:      c.shows,
			names:      simulation.Names{Fleet: "h100-64", Trace: "philly"},
			options:    simulation.Options{Load: c.load, Estimates: estimated},
			schedulers: rivals(baseline.SlurmTree),
			few: slices.Concat(
				[]string{baseline.SlurmBlock, baseline.SlurmFlat},
				placements(),
			),
			seeds: upTo(c.seeds),
		}, ablated: c.ablated})
	}
	return out
}

// ofAcme are the made traces. c1 and c2 take minutes a run, so that they have few ablations.
func ofAcme() []scene {
	ends := []deadlines{shares()[0], shares()[2]}
	of := func(name, fleet, trace, shows string, load float64, seeds int) entry {
		return entry{
			name:  name,
			shows: shows,
			names: simulation.Names{Fleet: fleet, Trace: trace},
			options: simulation.Options{
				Load:      load,
				Estimates: estimated,
			},
			schedulers: rivals(baseline.SlurmTree),
			few:        placements(),
			seeds:      upTo(seeds),
		}
	}
	kalos := of("acme-kalos", "c3", "acme-kalos",
		"evaluations of a minute and pretraining of up to 1,024 GPUs, on 2,304 GPUs in NVL72 racks", 5, usual)
	c3 := of("c3", "c3", "acme-seren",
		"jobs of all sizes on a GB200 SuperPOD, where the innermost boundary is NVLink's", 1.5, headline)
	for _, e := range []*entry{&kalos, &c3} {
		e.schedulers = rivals(baseline.SlurmBlock)
		e.few = slices.Concat([]string{baseline.SlurmTree}, placements())
	}
	return []scene{
		{entry: kalos, ablated: ends},
		{entry: of("c1", "c1", "acme-seren", "jobs of all sizes on an H100 SuperPOD", 2.7, headline)},
		{entry: of("c2", "c2", "acme-seren", "jobs of all sizes on 24,576 GPUs in racks of two machines", 40, usual)},
		{entry: c3, ablated: ends},
	}
}

// ofGangs are jobs of several nodes only, which ask for topology.
func ofGangs() []scene {
	var out []scene
	for _, c := range []struct {
		fleet, slurm string
		load         float64
	}{{"c1", baseline.SlurmTree, 4}, {"c3", baseline.SlurmBlock, 2.2}} {
		out = append(out, scene{entry: entry{
			name:       "gangs-" + c.fleet,
			shows:      "gangs of 2 to 64 nodes on " + c.fleet + " that ask for racks, blocks, segments and NVLink domains, each rival in its own words",
			names:      simulation.Names{Fleet: c.fleet, Trace: "gangs-2000"},
			options:    simulation.Options{Load: c.load, Estimates: estimated, Wishes: true},
			schedulers: rivals(c.slurm),
			few:        slices.Concat(others(c.slurm), placements()),
			seeds:      upTo(usual),
		}, ablated: shares()})
	}
	return out
}

// others are Slurm's plugins but one.
func others(slurm string) []string {
	all := []string{baseline.SlurmBlock, baseline.SlurmTree, baseline.SlurmFlat}
	return slices.DeleteFunc(all, func(name string) bool { return name == slurm })
}

// wishing are comparisons that stand beside the same without wishes.
func wishing() []entry {
	return []entry{{
		name: "c3-wishes", shows: "the jobs of c3, whose gangs ask for NVLink domains and segments",
		names:      simulation.Names{Fleet: "c3", Trace: "acme-seren"},
		options:    simulation.Options{Load: 1.5, Estimates: estimated, Wishes: true},
		schedulers: rivals(baseline.SlurmBlock), few: []string{perfect}, seeds: upTo(usual),
	}}
}

// native are the first gangs of traces on which the native scheduler would need hours, with Lockstep's plugins in the
// same engine: speeds of different engines are not compared.
func native() []entry {
	const gangs = 100
	var out []entry
	for _, c := range []struct {
		name, fleet, trace string
		load               float64
	}{{"philly-1.3", "h100-64", "philly", 1.3}, {"gangs-h100", "h100-64", "gangs-2000", 0.5}} {
		out = append(out, entry{
			name:    c.name + "-native",
			shows:   "the first jobs of " + c.name + ", played by the real kube-scheduler: with Lockstep's plugins, and with its own",
			names:   simulation.Names{Fleet: c.fleet, Trace: c.trace},
			options: simulation.Options{Load: c.load, Estimates: estimated, Wishes: true, First: gangs},
			schedulers: []string{
				schedulers.Lockstep,
				schedulers.NativeTAS,
			},
			seeds:  upTo(fewSeeds),
			engine: schedulers.Kube,
		})
	}
	return out
}

// quick are the same comparisons with one seed, without those that take longest, and with the first jobs only.
func quick() []entry {
	var out []entry
	for _, e := range plan() {
		if strings.HasPrefix(e.name, "c2") || strings.HasPrefix(e.name, "philly-1.3") || e.options.Silent > 0 ||
			e.engine != "" {
			continue
		}
		e.options.Quick, e.seeds = true, e.seeds[:1]
		out = append(out, e)
	}
	return out
}

// lists are openb's, which are compared with published results: the names of the files without their common part.
func lists() []string {
	return []string{
		"default", "cpu050", "cpu250", "gpushare40", "gpushare100",
		"gpuspec10", "gpuspec33", "multigpu20", "multigpu50",
	}
}

// shared is the comparison of a list of openb's that lies in a folder.
func shared(folder, list, suffix string) entry {
	const prefix = "openb:"
	e := entry{
		name: "openb-" + list, schedulers: openb.Policies(),
		names: simulation.Names{
			Fleet: prefix + folder + "/openb_node_list_gpu_node.csv" + suffix,
			Trace: prefix + folder + "/openb_pod_list_" + list + ".csv" + suffix,
		},
	}
	for seed := range uint64(10) {
		e.seeds = append(e.seeds, 42+seed)
	}
	return e
}
