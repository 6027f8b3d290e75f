package campaign

import (
	"github.com/lockstep-project/lockstep/simulator/baseline"
	"github.com/lockstep-project/lockstep/simulator/experiment"
	"github.com/lockstep-project/lockstep/simulator/openb"
	"github.com/lockstep-project/lockstep/simulator/schedulers"
)

// entry is one contest of the campaign.
type entry struct {
	// Name is that of its directory, Shows says what it is for.
	name, shows string
	names       experiment.Names
	options     experiment.Options
	schedulers  []string
	seeds       []uint64
}

// usual are those that are compared on fleets and traces of any size.
func usual() []string {
	return append(append([]string{schedulers.Lockstep}, baseline.Names()...), schedulers.Optimum)
}

// withNative are those that are compared where the native scheduler can be asked, too.
func withNative() []string {
	return append([]string{schedulers.Lockstep, schedulers.NativeTAS}, usual()[1:]...)
}

// estimated is how much too long owners say that their jobs run, at most: deadlines are one to three times the run time.
const estimated = 3

// plan lists the contests. Loads are chosen so that somebody waits most of the time and nobody waits for ever.
func plan() []entry {
	seeds := []uint64{1, 2, 3}
	said := func(load float64) experiment.Options { return experiment.Options{Load: load, Estimates: estimated} }
	return []entry{
		{
			"knavigator-53",
			"53 gangs that fit perfectly, if they are taken in their order: the optimum is 270 s, nothing ever idle",
			experiment.Names{Fleet: "knavigator-32", Trace: "knavigator-53"},
			experiment.Options{Load: 1},
			withNative(), seeds[:1],
		},
		{
			"fragment-then-gang", "small jobs leave a hole in every node, then two gangs of 512 GPUs come",
			experiment.Names{Fleet: "h100-128", Trace: "fragment-then-gang"},
			said(1), withNative(), seeds,
		},
		{
			"starving-512", "one gang of 512 GPUs under a stream of jobs of one GPU that asks for more than there is",
			experiment.Names{Fleet: "h100-128", Trace: "starving-512"},
			said(1), usual(), seeds,
		},
		{
			"philly-1.0", "Microsoft's jobs on 512 GPUs, as fast as they came",
			experiment.Names{Fleet: "h100-64", Trace: "philly"},
			said(1), usual(), seeds,
		},
		{
			"philly-1.3", "the same, 1.3 times as fast",
			experiment.Names{Fleet: "h100-64", Trace: "philly"},
			said(1.3), usual(), seeds,
		},
		{
			"philly-1.6", "the same, 1.6 times as fast: more than there is",
			experiment.Names{Fleet: "h100-64", Trace: "philly"},
			said(1.6), usual(), seeds,
		},
		{
			"acme-kalos", "evaluations of a minute and pretraining of up to 1,024 GPUs, on 2,304 GPUs in NVL72 racks",
			experiment.Names{Fleet: "c3", Trace: "acme-kalos"},
			said(5), usual(), seeds,
		},
		{
			"c1", "jobs of all sizes on an H100 SuperPOD",
			experiment.Names{Fleet: "c1", Trace: "acme-seren"},
			said(2.7), usual(), seeds,
		},
		{
			"c2", "jobs of all sizes on 24,576 GPUs in racks of two machines",
			experiment.Names{Fleet: "c2", Trace: "acme-seren"},
			said(40), usual(), seeds,
		},
		{
			"c3", "jobs of all sizes on a GB200 SuperPOD, where the innermost boundary is NVLink's",
			experiment.Names{Fleet: "c3", Trace: "acme-seren"},
			said(1.5), usual(), seeds,
		},
	}
}

// quick are the same contests with one seed, without those that take longest, and with the first jobs only.
func quick() []entry {
	var out []entry
	for _, e := range plan() {
		if e.name == "c2" || e.name == "philly-1.3" {
			continue
		}
		e.options.Quick, e.seeds = true, e.seeds[:1]
		out = append(out, e)
	}
	return out
}

// lists are openb's, which are compared with what was published: the names of the files without what all have in common.
func lists() []string {
	return []string{
		"default", "cpu050", "cpu250", "gpushare40", "gpushare100",
		"gpuspec10", "gpuspec33", "multigpu20", "multigpu50",
	}
}

// shared is the contest of a list of openb's that lies in a folder.
func shared(folder, list, suffix string) entry {
	const prefix = "openb:"
	e := entry{
		name: "openb-" + list, schedulers: openb.Policies(),
		names: experiment.Names{
			Fleet: prefix + folder + "/openb_node_list_gpu_node.csv" + suffix,
			Trace: prefix + folder + "/openb_pod_list_" + list + ".csv" + suffix,
		},
	}
	for seed := range uint64(10) {
		e.seeds = append(e.seeds, 42+seed)
	}
	return e
}
