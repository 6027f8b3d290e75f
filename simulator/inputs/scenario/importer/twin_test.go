package importer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
)

// crowd is a cluster of four nodes with gangs and pods in all states, drawn from r; the second result is the number of
// GPUs that pods hold of each node, counted one by one, and the third the number of pods that have to be jobs.
func crowd(r *rand.Rand) (objects string, held map[string]int64, waiting int) {
	held = map[string]int64{}
	nodes := []string{"a1", "a2", "b1", "b2"}
	status := func(node string, gpus int) (where, status string) {
		switch r.IntN(6) {
		case 0:
			return on(node), "status: {phase: Succeeded}\n"
		case 1:
			return on("gone"), ""
		}
		held[node] += int64(gpus)
		return on(node), "status: {phase: Running, startTime: \"2026-11-22T11:30:00Z\"}\n"
	}
	var text strings.Builder
	text.WriteString(racks() + pod("always", 0, on("a1"), ""))
	for i := range r.IntN(12) {
		name, gpus, node := fmt.Sprintf("u%d", i), r.IntN(3), nodes[r.IntN(4)]
		switch r.IntN(4) {
		case 0: // a gang that waits
			text.WriteString(gang(name, r.IntN(3)) + member(name, 0, gpus, "", "") + member(name, 1, gpus+1, "", ""))
			waiting += 2
		case 1: // a gang that runs, or the rest of it
			text.WriteString(gang(name, r.IntN(3)))
			for rank := range 2 {
				where, state := status(node, gpus)
				text.WriteString(member(name, rank, gpus, where, state))
			}
		case 2:
			text.WriteString(pod(name, gpus, "", ""))
			waiting++
		default:
			where, state := status(node, gpus)
			text.WriteString(pod(name, gpus, where, state))
		}
	}
	return text.String(), held, waiting
}

// Whatever the cluster, no GPU and no pod is counted twice or forgotten.
func TestFromSnapshot_CountsEveryPodOnce(t *testing.T) {
	for seed := range uint64(60) {
		text, held, waiting := crowd(rand.New(rand.NewPCG(seed, 1)))
		s := from(t, text, nil, scenario.Options{})
		runs, seen := map[int]int64{}, map[string]bool{}
		for i, r := range s.Running {
			for _, h := range r.Holds {
				runs[h.Node] += h.Demand[s.Accelerator]
			}
			for _, p := range objects(t, s).Running[i].Pods {
				if seen[p.Name] {
					t.Errorf("seed %d: %s runs twice", seed, p.Name)
				}
				seen[p.Name] = true
			}
		}
		for i, n := range objects(t, s).Nodes {
			if runs[i] != held[n.Name] || s.Ledger.Free[i][s.Accelerator] != max(8-held[n.Name], 0) {
				t.Errorf("seed %d: on %s %d GPUs are held and %d free, want %d held", seed, n.Name, runs[i],
					s.Ledger.Free[i][s.Accelerator], held[n.Name])
			}
		}
		for _, j := range s.Jobs {
			waiting -= len(j.Gang.Members)
			for i, m := range j.Gang.Members {
				want := objects(t, s).Jobs[j.ID].Pods[i].Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
				if got := j.Gang.Shapes[m.Shape].Demand[s.Accelerator]; got != want.Value() {
					t.Errorf("seed %d: rank %d of %s takes %d, want %s", seed, i, j.ID, got, &want)
				}
			}
		}
		if waiting != 0 {
			t.Errorf("seed %d: %d pods that wait are no job's, or too many", seed, waiting)
		}
	}
}

// A snapshot that was made anonymous is the same scene, but for names.
func TestFromSnapshot_AnonymousIsTheSameScene(t *testing.T) {
	shape := func(file string) string {
		snap, err := capture.ReadFile("../../capture/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := importer.FromSnapshot(&snap, nil, scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		_, _ = fmt.Fprintln(
			&text,
			s.Fleet,
			s.Ledger.Len(),
			s.GPUs(),
			s.Closed,
			s.Ledger.Free,
			len(s.Ledger.Tree.Levels()),
		)
		for _, r := range s.Running {
			_, _ = fmt.Fprintln(&text, r.Holds, r.Ends, r.Expected, r.Accelerators)
		}
		for _, j := range s.Jobs {
			_, _ = fmt.Fprintln(&text, j.Waited, j.Duration, j.Needed, j.Accelerators, j.Priority, len(j.Gang.Members))
		}
		return text.String()
	}
	plain, anonymous := shape("cluster.snapshot.json"), shape("anonymous.snapshot.json")
	if plain != anonymous || !strings.Contains(plain, "snapshot 2026-11-22T07:00:00Z 2 8") {
		t.Errorf("as it is:\n%s\nanonymous:\n%s", plain, anonymous)
	}
}
