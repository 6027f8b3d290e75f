package trace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// The small ones always ask for more than the cluster has while the gang waits, so that no gang gets 64 whole nodes by
// luck.
func TestStarving512_SmallJobsFillTheCluster(t *testing.T) {
	tr, err := trace.Open("starving-512", 1)
	if err != nil {
		t.Fatal(err)
	}
	const gpus = 1024
	var gang trace.Job
	var work time.Duration // of those that arrive in the first hours, and do not wait
	for _, j := range tr.Jobs {
		switch {
		case j.Tenant == "large":
			gang = j
		case j.GPUs() != 1 || j.Duration > 90*time.Minute:
			t.Fatalf("%+v", j)
		default:
			work += j.Duration
		}
	}
	if gang.GPUs() != 512 || gang.Submit != 2*time.Hour {
		t.Errorf("%+v", gang)
	}
	if demand := work.Hours() / 12; demand < 1.1*gpus || demand > 1.25*gpus {
		t.Errorf(
			"%.0f GPUs are asked for on average, want a tenth and what is there from the beginning more than %d",
			demand,
			gpus,
		)
	}
	full := 0
	for _, j := range tr.Jobs {
		if j.Submit == 0 {
			full++
		}
	}
	if full < gpus {
		t.Errorf("%d jobs come at once, want the cluster full", full)
	}
}

func TestSchedulerPerf_Shapes(t *testing.T) {
	for name, want := range map[string]struct {
		gangs, pods int
		required    string
	}{
		"k8s-gang": {1000, 3, ""}, "k8s-gang:9x1000": {9, 1000, ""}, "k8s-tas": {750, 4, "tier-0"},
		"k8s-tas:2250x4": {2250, 4, "tier-0"},
	} {
		tr, err := trace.Open(name, 5)
		if err != nil {
			t.Fatal(err)
		}
		last := tr.Jobs[len(tr.Jobs)-1]
		if len(tr.Jobs) != want.gangs || last.Pods() != want.pods || last.Required != want.required ||
			last.Submit != 0 || !strings.HasPrefix(tr.Name, name) || !tr.Synthetic {
			t.Errorf("%s (%s): %d gangs such as %+v", name, tr.Name, len(tr.Jobs), last)
		}
	}
	for _, name := range []string{"k8s-gang:3", "k8s-tas:0x4", "k8s-tas:x", "k8s-gang:1001x1000", "k8s-gang:-1x-1"} {
		if _, err := trace.Open(name, 0); !badinput.Is(err) || !strings.Contains(err.Error(), "at most 1000000 pods") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
