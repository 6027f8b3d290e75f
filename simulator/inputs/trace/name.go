package trace

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// published holds the data whose license allows redistribution; each folder has its SOURCE.md.
//
//go:embed data/philly/philly.csv.gz data/acme/*.csv
var published embed.FS

// Open returns the trace of a name:
//
//	philly, philly:FILE     Microsoft's jobs of 2017, the list that is built in or another (Philly)
//	acme-kalos, acme-seren  made from the published figures of Shanghai AI Lab's jobs (Acme)
//	knavigator-53           NVIDIA's gangs that fill 32 nodes (Knavigator)
//	fragment-then-gang      small jobs that leave a hole in every node, then large gangs (FragmentThenGang)
//	starving-512            a gang of 512 GPUs under a stream of jobs of one (Starving)
//	service                 a job of ten days without a deadline, a gang of all nodes, jobs of one node (Service)
//	sweeps                  four sweeps whose trials are stopped early, and jobs of others (Sweeps)
//	gangs-N                 N jobs of several nodes, by published shares of sizes (Gangs)
//	k8s-gang, k8s-gang:GxP  Kubernetes' benchmark: G gangs of P pods at once, 1000x3 if not said (SchedulerPerf)
//	k8s-tas, k8s-tas:GxP    the same within a rack (level tier-0) each, 750x4 if not said
//	FILE.jsonl, .jsonl.gz   the project's own format (JSONL)
//
// The seed determines the draws of those that are made. The recorded ones, philly and philly:FILE, are as recorded with
// seed 0, and their weeks are drawn with all others (Resample). A file of our own is played unchanged, whatever the
// seed. A name that is none of these is bad input.
func Open(name string, seed uint64) (Trace, error) {
	switch kind, of, _ := strings.Cut(name, ":"); {
	case name == "philly", kind == "philly" && of != "":
		return recorded(of, seed)
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".jsonl.gz"):
		return JSONL(name)
	case name == "acme-kalos":
		return acme(Kalos, seed)
	case name == "acme-seren":
		return acme(Seren, seed)
	case name == "knavigator-53":
		return Knavigator(), nil
	case name == "fragment-then-gang":
		return FragmentThenGang(Fragments{Nodes: 128, GPUs: 8, Gangs: 2, Pods: 64}, seed), nil
	case name == "starving-512":
		return starving(Starvation{Nodes: 128, GPUs: 8, Pods: 64}, seed), nil
	case name == "service":
		return Service(seed), nil
	case name == "sweeps":
		return Sweeps(seed), nil
	case strings.HasPrefix(name, gangsPrefix):
		return namedGangs(name, seed)
	case name == "k8s-gang", kind == "k8s-gang" && of != "":
		return schedulerPerf(name, of, "1000x3", "")
	case name == "k8s-tas", kind == "k8s-tas" && of != "":
		return schedulerPerf(name, of, "750x4", "tier-0")
	}
	return Trace{}, &badinput.Error{
		What: fmt.Sprintf("there is no trace %q", name),
		Mend: "name philly, philly:FILE, acme-kalos, acme-seren, knavigator-53, fragment-then-gang, starving-512, service, sweeps, gangs-N, " +
			"k8s-gang, k8s-tas, or a file whose name ends in .jsonl or .jsonl.gz",
	}
}

// gangsPrefix begins the names of traces of so many gangs.
const gangsPrefix = "gangs-"

// namedGangs returns the gangs that a name asks for.
func namedGangs(name string, seed uint64) (Trace, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, gangsPrefix))
	if err != nil || n < 1 || n > MostPods {
		return Trace{}, &badinput.Error{
			What: fmt.Sprintf("there is no trace %q", name),
			Mend: fmt.Sprintf("write how many gangs there are, from 1 to %d, such as gangs-600", MostPods),
		}
	}
	return gangs(n, seed)
}

// recorded is Microsoft's list of a file, or the one that is built in, drawn by the seed.
func recorded(file string, seed uint64) (t Trace, err error) {
	if file == "" {
		t, err = builtinPhilly()
	} else {
		t, err = philly(file)
	}
	if err != nil {
		return Trace{}, err
	}
	return Resample(t, seed)
}

// builtinPhilly is the list that is built in.
func builtinPhilly() (Trace, error) {
	const file = "data/philly/philly.csv.gz"
	packed, err := published.ReadFile(file)
	if err != nil {
		return Trace{}, fmt.Errorf("reading what is built in: %w", err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Trace{}, fmt.Errorf("reading what is built in: %w", err)
	}
	t, err := ReadPhilly(plain, file)
	t.Source += ", those selected for Pollux (OSDI '21)"
	return t, err
}

// Compress returns the trace with submissions and events that arrive so many times as fast; durations stay, so the load
// on a cluster is so many times as high. The load is above 0 and at most 1,000; another is bad input. Name and source
// stay.
func Compress(t Trace, load float64) (Trace, error) {
	if !(load > 0 && load <= 1000) {
		return Trace{}, &badinput.Error{
			What: fmt.Sprintf(
				"a load of %g cannot be had",
				load,
			),
			Mend: "write a number above 0, such as 1.3, of at most 1000",
		}
	}
	sooner := func(at time.Duration) (time.Duration, error) {
		scaled := math.Round(float64(at) / load)
		if scaled > float64(MostTime) {
			return 0, &badinput.Error{
				What: fmt.Sprintf(
					"with a load of %g the trace lasts longer than 100 years",
					load,
				),
				Mend: "write a higher one",
			}
		}
		return time.Duration(scaled), nil
	}
	jobs, events := append([]Job(nil), t.Jobs...), append([]Event(nil), t.Events...)
	var err error
	for i := range jobs {
		if jobs[i].Submit, err = sooner(jobs[i].Submit); err != nil {
			return Trace{}, err
		}
	}
	for i := range events {
		if events[i].At, err = sooner(events[i].At); err != nil {
			return Trace{}, err
		}
	}
	t.Jobs, t.Events = jobs, events
	return t.sorted(), nil
}
