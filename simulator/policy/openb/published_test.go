package openb_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
)

var long = flag.Bool("long", false, "play all lists in ../shared/data/openb, and not only those that are committed")

const (
	committed = "../../inputs/trace/testdata/openb"
	shared    = "../../../../shared/data/openb"
)

// lists returns those with published values.
func lists() []string {
	return []string{
		"default", "gpuspec33", "multigpu50",
		"cpu050", "cpu250", "gpushare40", "gpushare100", "gpuspec10", "multigpu20",
	}
}

// inShort are the lists that are committed.
func inShort(list string) bool {
	return list == "default" || list == "gpuspec33" || list == "multigpu50"
}

// near returns the tolerance of the mean.
func near(policy string) float64 {
	if policy == openb.BestFit || policy == openb.FGD {
		return 0.5
	}
	return 1
}

func TestPublished_AllocationIsReached(t *testing.T) {
	for _, list := range lists() {
		published := openb.Published("openb_pod_list_" + list + ".csv.gz")
		t.Run(list, func(t *testing.T) {
			folder, suffix := committed, ".csv.gz"
			if !inShort(list) {
				if !*long {
					t.Skip("with -long")
				}
				folder, suffix = shared, ".csv"
			}
			t.Parallel()
			scenes := read(t, folder, suffix, list, 10)
			for _, policy := range openb.Policies() {
				want := published[policy].Mean
				at := average(t, scenes, policy)
				got := at(100).Allocated
				if list == "default" {
					checkCurve(t, policy, at)
				}
				t.Logf("%-11s %-14s %6.2f published %6.2f difference %+.2f", list, policy, got, want, got-want)
				if math.Abs(got-want) > near(policy) {
					t.Errorf("%s allocates %.2f %%, published is %.2f", policy, got, want)
				}
			}
		})
	}
}

// publishedCurve is more of the same tables, of the default list: the allocation when pods have requested so many per
// cent of the GPUs, then the fragmentation in per cent of all GPUs, and in per cent of the free part.
const publishedCurve = `
               allocated                     fragmented                          of free
policy            80    90    95   110   130   20   40   60   80   90  100   20   40   60   80   90   95  100
random         78.66 85.02 85.72 86.88 87.47 14.7 14.9 15.4 15.9 14.5 13.5 18.3 24.9 38.4 74.6 96.7 97.7 98.4
dot-product    80.02 89.98 90.58 90.70 90.85 14.1 12.8 11.4 10.1  9.4  9.3 17.6 21.3 28.6 50.5 94.2 99.2 99.2
gpu-clustering 80.02 89.98 91.61 91.73 91.88 14.5 13.0 11.2  9.4  8.4  8.2 18.1 21.7 28.0 46.9 84.3 98.4 98.4
gpu-packing    80.02 89.98 91.74 91.86 92.00 14.4 12.9 11.1  9.3  8.4  8.1 18.1 21.6 27.8 46.4 83.6 98.9 98.9
best-fit       80.02 89.99 92.82 92.94 93.08 13.4 11.7 10.0  8.3  7.4  7.1 16.7 19.5 24.9 41.5 74.1 98.8 98.8
fgd            80.02 89.98 94.91 95.30 95.39 11.9  9.9  8.0  6.0  5.0  4.7 14.9 16.5 19.9 29.9 50.0 91.6 99.1
`

// checkCurve compares a policy's result for the default list with the line of the policy.
func checkCurve(t *testing.T, policy string, at func(percent int) openb.Sample) {
	t.Helper()
	const allocations, fragmentations = 5, 6
	lines := strings.Split(strings.TrimSpace(publishedCurve), "\n")
	percents := numbers(t, strings.Fields(lines[1])[1:])
	own := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, policy+" ") })
	for i, want := range numbers(t, strings.Fields(lines[own])[1:]) {
		percent := int(percents[i])
		what, got, bound := "allocated", at(percent).Allocated, near(policy)
		switch {
		case i >= allocations+fragmentations: // in the end the free part is small, so a little of all GPUs is much of it
			what, got, bound = "fragmented of free", at(percent).FragmentedOfFree, 1.5
		case i >= allocations:
			what, got, bound = "fragmented", at(percent).Fragmented, 0.5
		}
		t.Logf("%-14s at %3d %% %s %.2f, published %.2f, difference %+.2f", policy, percent, what, got, want, got-want)
		if math.Abs(got-want) > bound {
			t.Errorf("%s at %d %%: %s %.2f %%, published is %.2f", policy, percent, what, got, want)
		}
	}
}

func numbers(tb testing.TB, fields []string) []float64 {
	tb.Helper()
	values := make([]float64, len(fields))
	for i, field := range fields {
		if _, err := fmt.Sscan(field, &values[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return values
}

// average plays the scenes and returns the mean samples.
func average(tb testing.TB, scenes []openb.Scene, policy string) func(percent int) openb.Sample {
	tb.Helper()
	var results []openb.Result
	for _, scene := range scenes {
		results = append(results, play(tb, scene, policy))
	}
	return func(percent int) openb.Sample {
		var samples []openb.Sample
		for _, r := range results {
			samples = append(samples, r.At(percent))
		}
		return mean(samples)
	}
}

// read makes the scenes of a published list for the seeds from 42.
func read(tb testing.TB, folder, suffix, list string, seeds int) []openb.Scene {
	tb.Helper()
	path := filepath.Join(folder, "openb_pod_list_"+list+suffix)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("the list is not here: %v", err)
	}
	pods, err := trace.OpenbPods(path)
	if err != nil {
		tb.Fatal(err)
	}
	nodes, err := trace.OpenbNodes(filepath.Join(committed, "openb_node_list_gpu_node.csv.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	var scenes []openb.Scene
	for i := range seeds {
		scene, err := openb.NewScene(nodes, pods, uint64(42+i))
		if err != nil {
			tb.Fatal(err)
		}
		scenes = append(scenes, scene)
	}
	return scenes
}

func play(tb testing.TB, scene openb.Scene, policy string) openb.Result {
	tb.Helper()
	result, err := openb.Run(scene, policy, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return result
}

func BenchmarkPolicies(b *testing.B) {
	scene := read(b, committed, ".csv.gz", "default", 1)[0]
	for _, policy := range openb.Policies() {
		b.Run(policy, func(b *testing.B) {
			for b.Loop() {
				play(b, scene, policy)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*scene.Arrivals()), "ns/pod")
		})
	}
}
