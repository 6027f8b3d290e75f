package trace_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Starting the jobs in their order fills all nodes every time, so nothing can be better: the work fills 32 nodes until
// the last has ended.
func TestKnavigator_PacksPerfectly(t *testing.T) {
	const nodes = 32
	tr := trace.Knavigator()
	free, now := nodes, time.Duration(0)
	var work time.Duration
	for i, j := range tr.Jobs {
		if j.Podsets[0].GPUs != 8 || j.Pods() < 1 || j.Pods() > nodes || (i > 0 && j.ID <= tr.Jobs[i-1].ID) {
			t.Errorf("%+v", j)
		}
		if free == 0 { // all have ended
			free, now = nodes, now+j.Duration
		}
		if j.Pods() > free {
			t.Fatalf("%s needs %d nodes, and %d are free", j.ID, j.Pods(), free)
		}
		free -= j.Pods()
		work += time.Duration(j.Pods()) * j.Duration
	}
	end := now + tr.Jobs[0].Duration
	if len(tr.Jobs) != 53 || free != 0 || work != nodes*end || end != 270*time.Second {
		t.Errorf("%d jobs, %d nodes free, %s of work until %s", len(tr.Jobs), free, work, end)
	}
}

// A picture of the smallest: the GPUs, in the order of the jobs, that are still in use when the gangs arrive.
func TestFragmentThenGang(t *testing.T) {
	tr := trace.FragmentThenGang(trace.Fragments{Nodes: 4, GPUs: 4, Gangs: 1, Pods: 2}, 1)
	var picture strings.Builder
	for i, j := range tr.Jobs[:16] {
		if i > 0 && i%4 == 0 {
			picture.WriteByte(' ')
		}
		if j.Duration > time.Hour {
			picture.WriteByte('#')
		} else {
			picture.WriteByte('.')
		}
	}
	if n := strings.Count(picture.String(), "#"); n != 8 {
		t.Errorf("%s: %d are in use", &picture, n)
	}
	last := tr.Jobs[16]
	if len(tr.Jobs) != 17 || last.Submit != time.Hour || last.Pods() != 2 || last.GPUs() != 8 {
		t.Errorf("%+v", last)
	}
}

// Half of the GPUs are free, and hardly a node.
func TestFragmentThenGang_LeavesHardlyANode(t *testing.T) {
	tr, err := trace.Open("fragment-then-gang", 7)
	if err != nil {
		t.Fatal(err)
	}
	inUse := map[int]int{}
	for i, j := range tr.Jobs[:1024] {
		if j.GPUs() != 1 || j.Submit != 0 {
			t.Fatalf("%+v", j)
		}
		if j.Duration > time.Hour {
			inUse[i/8]++
		}
	}
	if len(tr.Jobs) != 1026 || tr.Jobs[1025].GPUs() != 512 || len(inUse) < 122 {
		t.Errorf("%d jobs, %d nodes in use", len(tr.Jobs), len(inUse))
	}
}

func TestOpen_SameSeedGivesSameBytes(t *testing.T) {
	for _, name := range names() {
		first, err := trace.Open(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		second, err := trace.Open(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		text := written(t, first)
		if !bytes.Equal(text, written(t, second)) {
			t.Errorf("%s: the same seed gives another trace", name)
		}
		other, err := trace.Open(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		drawn := name != "knavigator-53" && !strings.HasPrefix(name, "k8s-")
		if bytes.Equal(text, written(t, other)) == drawn {
			t.Errorf("%s: drawn by the seed is to be %t", name, drawn)
		}
		if drawn && !first.Synthetic {
			t.Errorf("%s does not say that it is synthetic", name)
		}
		if _, err := trace.ReadJSONL(bytes.NewReader(text), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func names() []string {
	return []string{
		"acme-kalos",
		"acme-seren",
		"knavigator-53",
		"fragment-then-gang",
		"starving-512",
		"sweeps",
		"k8s-gang",
		"k8s-tas:9x1000",
	}
}

func TestOpen_RefusesUnknownTrace(t *testing.T) {
	_, err := trace.Open("phily", 1)
	const want = `there is no trace "phily"; name philly, philly:FILE, acme-kalos, acme-seren, knavigator-53, fragment-then-gang, ` +
		"starving-512, service, sweeps, gangs-N, k8s-gang, k8s-tas, or a file whose name ends in .jsonl or .jsonl.gz"
	if err == nil || err.Error() != want || !badinput.Is(err) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// The scene of ten days has the properties of its comment.
func TestService(t *testing.T) {
	tr := trace.Service(3)
	silent, gangs, tenants := 0, 0, map[string]bool{}
	for _, j := range tr.Jobs {
		tenants[j.Tenant] = true
		switch {
		case j.Estimate == 0:
			silent++
			if j.GPUs() != 1 || j.Duration != 240*time.Hour || j.Submit != 0 {
				t.Errorf("%+v", j)
			}
		case j.Estimate != j.Duration:
			t.Errorf("%s states %s and runs %s", j.ID, j.Estimate, j.Duration)
		case j.Pods() == 64:
			gangs++
			if j.Submit != time.Minute {
				t.Errorf("%+v", j)
			}
		case j.Pods() != 1 || j.GPUs() != 8 || j.Duration < 30*time.Minute || j.Duration > 90*time.Minute ||
			j.Submit < 2*time.Minute || j.Submit > 2*time.Minute+48*time.Hour:
			t.Errorf("%+v", j)
		}
	}
	if len(tr.Jobs) != 2002 || silent != 1 || gangs != 1 || len(tenants) != 22 {
		t.Errorf("%d jobs, %d silent, %d gangs, %d tenants", len(tr.Jobs), silent, gangs, len(tenants))
	}
}

// Of Seren's jobs, 1.11 of 3.11 per cent of those from 16 to 512 GPUs have 16 (97.86 - 96.75, 99.86 - 96.75): 357 of
// 1,000.
func TestGangs(t *testing.T) {
	tr, err := trace.Open("gangs-1000", 5)
	if err != nil {
		t.Fatal(err)
	}
	count := map[int]int{}
	work, last := 0.0, time.Duration(0)
	for _, j := range tr.Jobs {
		count[j.GPUs()]++
		work += j.GPUHours()
		last = max(last, j.Submit)
		if j.Pods() < 2 || j.Pods() > 64 || j.Duration < time.Minute {
			t.Errorf("%+v", j)
		}
	}
	if len(tr.Jobs) != 1000 || count[16] != 357 || count[512] == 0 || !tr.Synthetic {
		t.Errorf("%d gangs, by GPUs %v", len(tr.Jobs), count)
	}
	if demand := work / last.Hours(); demand < 1000 || demand > 1100 {
		t.Errorf("they ask for %.0f GPUs", demand)
	}
	for _, name := range []string{"gangs-", "gangs-0", "gangs-x", "gangs-1000001"} {
		if _, err := trace.Open(name, 1); !badinput.Is(err) {
			t.Errorf("%s: %v, want bad input", name, err)
		}
	}
}
