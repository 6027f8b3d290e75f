package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// teams are jobs of six tenants; the first tenant has more than half of them.
func teams() []trace.Job {
	var jobs []trace.Job
	for i := range 100 {
		jobs = append(jobs, trace.Job{
			ID: fmt.Sprintf("j%02d", i), Tenant: fmt.Sprintf("t%d", max(0, i-55)%6), Duration: time.Hour,
			Podsets: []trace.Podset{{Count: 1, GPUs: 8}},
		})
	}
	return jobs
}

// stating counts the jobs that state a deadline, and the tenants with both kinds.
func stating(s *scenario.Scenario) (n, divided int) {
	some := map[string][2]bool{}
	for _, j := range s.Jobs {
		of := some[j.Tenant]
		if j.Estimate > 0 {
			n++
			of[0] = true
		} else {
			of[1] = true
		}
		some[j.Tenant] = of
	}
	for _, of := range some {
		if of[0] && of[1] {
			divided++
		}
	}
	return n, divided
}

// The share is met to the job, and one tenant at most is divided: owners differ. The estimates that remain are those of
// all.
func TestOptions_Silent(t *testing.T) {
	all := made(t, open(t, "h100-64"), jobs(teams()...), scenario.Options{Estimates: 3, Seed: 7})
	for _, c := range []struct {
		silent float64
		want   int
	}{{0, 100}, {0.5, 50}, {0.37, 63}, {1, 0}} {
		s := made(t, open(t, "h100-64"), jobs(teams()...), scenario.Options{Estimates: 3, Seed: 7, Silent: c.silent})
		n, divided := stating(s)
		if n != c.want || divided > 1 {
			t.Errorf("silent %g: %d state a deadline, want %d; %d tenants are divided", c.silent, n, c.want, divided)
		}
		for i, j := range s.Jobs {
			if j.Estimate > 0 && j.Estimate != all.Jobs[i].Estimate {
				t.Errorf("silent %g: %s states %s instead of %s", c.silent, j.ID, j.Estimate, all.Jobs[i].Estimate)
			}
		}
		if said := strings.Contains(s.Source, "state the deadlines"); said != (c.silent > 0) {
			t.Errorf("silent %g: the source is %q", c.silent, s.Source)
		}
	}
	first := made(t, open(t, "h100-64"), jobs(teams()...), scenario.Options{Estimates: 3, Seed: 1, Silent: 0.5})
	second := made(t, open(t, "h100-64"), jobs(teams()...), scenario.Options{Estimates: 3, Seed: 2, Silent: 0.5})
	same := 0
	for i := range first.Jobs {
		if (first.Jobs[i].Estimate > 0) == (second.Jobs[i].Estimate > 0) {
			same++
		}
	}
	if same == len(first.Jobs) {
		t.Error("seeds 1 and 2 silence the same jobs")
	}
}

// gangsOf are gangs of so many nodes each.
func gangsOf(gpus int, sizes ...int) []trace.Job {
	var out []trace.Job
	for i, size := range sizes {
		out = append(out, trace.Job{
			ID: fmt.Sprintf("g%02d", i), Duration: time.Hour, Podsets: []trace.Podset{{Count: size, GPUs: gpus}},
		})
	}
	return out
}

// asked returns the wishes of jobs, one word each.
func asked(s *scenario.Scenario) string {
	var words []string
	for _, j := range s.Jobs {
		g := j.Gang
		switch {
		case g.Required != "":
			words = append(words, "required:"+g.Required)
		case g.Segment.Size > 0:
			words = append(words, fmt.Sprintf("%dx%s", g.Segment.Size, g.Segment.Level))
		case g.Preferred != "":
			words = append(words, "preferred:"+g.Preferred)
		default:
			words = append(words, "-")
		}
	}
	return strings.Join(words, " ")
}

// h100-64 has 2 pods of 4 racks of 8 nodes, c3 NVLink domains of 18 nodes in leafs of 72.
func TestOptions_Wishes(t *testing.T) {
	s := made(
		t,
		open(t, "c3"),
		jobs(gangsOf(4, 1, 2, 16, 17, 18, 20, 24, 32, 64, 67)...),
		scenario.Options{Wishes: true},
	)
	want := strings.Join([]string{
		"-",
		"required:clique",
		"required:clique",
		"preferred:tier-0",
		"9xclique",
		"10xclique",
		"12xclique",
		"16xclique",
		"16xclique",
		"preferred:tier-0",
	}, " ")
	if got := asked(s); got != want {
		t.Errorf("c3: %s\nwant %s", got, want)
	}
	s = made(t, open(t, "h100-64"), jobs(gangsOf(8, 1, 9, 32, 33)...), scenario.Options{Wishes: true})
	if got, want := asked(
		s,
	), strings.Join(
		[]string{"-", "preferred:tier-1", "preferred:tier-1", "-"},
		" ",
	); got != want {
		t.Errorf("h100-64: %s", got)
	}
	sizes := make([]int, 200)
	for i := range sizes {
		sizes[i] = 2 + i%7
	}
	s = made(t, open(t, "h100-64"), jobs(gangsOf(8, sizes...)...), scenario.Options{Wishes: true})
	required := strings.Count(asked(s), "required:tier-0")
	if preferred := strings.Count(
		asked(s),
		"preferred:tier-0",
	); required+preferred != 200 || required < 80 ||
		required > 120 {
		t.Errorf("%d racks are required, %d preferred", required, preferred)
	}
	own := gangsOf(8, 4)
	own[0].Preferred = "tier-1"
	s = made(t, open(t, "h100-64"), jobs(own...), scenario.Options{Wishes: true})
	if got := asked(s); got != "preferred:tier-1" {
		t.Errorf("a wish of its own: %s", got)
	}
}
