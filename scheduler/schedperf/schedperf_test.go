package schedperf_test

import (
	"bytes"
	stdcmp "cmp"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/scheduler/schedperf"
)

var rewrite = flag.Bool("rewrite", false, "write the table of testdata anew")

func TestMedian(t *testing.T) {
	run := func(podsPerSecond, heap float64) schedperf.Figures {
		return schedperf.Figures{PodsPerSecond: podsPerSecond, HeapMB: heap}
	}
	for name, test := range map[string]struct {
		runs []schedperf.Figures
		want schedperf.Figures
	}{
		"none":                   {nil, schedperf.Figures{}},
		"one":                    {[]schedperf.Figures{run(7, 1)}, run(7, 1)},
		"two: their mean":        {[]schedperf.Figures{run(7, 1), run(8, 4)}, run(7.5, 2.5)},
		"each figure by itself":  {[]schedperf.Figures{run(1, 30), run(3, 20), run(2, 10)}, run(2, 20)},
		"three digits are kept":  {[]schedperf.Figures{run(1.23456, 0)}, run(1.235, 0)},
		"an outlier has no part": {[]schedperf.Figures{run(1, 1), run(2, 2), run(900, 900)}, run(2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, schedperf.Median(test.runs)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestRatio(t *testing.T) {
	native := schedperf.Figures{PodsPerSecond: 40, AttemptMean: 100, HeapMB: 500, SchedulerCPUPerPod: 2}
	ours := schedperf.Figures{PodsPerSecond: 280, AttemptMean: 5, HeapMB: 600, Seconds: 10, SchedulerCPUPerPod: 1}
	nan := math.NaN()
	want := schedperf.Figures{
		PodsPerSecond: 7,
		AttemptMean:   0.05,
		HeapMB:        1.2,
		AttemptP99:    nan,
		AlgorithmMean: nan,
		AlgorithmP99:  nan,
		Seconds:       nan,
		Attempts:      nan,
		Faults:        nan,
		Throughput:    nan,

		CPUPerPod:          nan,
		SchedulerCPUPerPod: 0.5,
	}
	if diff := cmp.Diff(want, schedperf.Ratio(native, ours), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestWriteTable(t *testing.T) {
	record := func(workload string, profile schedperf.Profile, runs int, f schedperf.Figures) schedperf.Record {
		return schedperf.Record{Workload: workload, Profile: profile, Figures: f, Runs: runs}
	}
	var got bytes.Buffer
	err := schedperf.WriteTable(&got, []schedperf.Record{
		record("Gangs/many", schedperf.Native, 1, schedperf.Figures{
			PodsPerSecond: 40.25,
			Seconds:       75,
			Throughput:    60,
			Attempts:      3,
			Faults:        1,
			AttemptMean:   23500,
			AttemptP99:    16384,
			AlgorithmMean: 20000,
			AlgorithmP99:  16384,
			HeapMB:        900,

			CPUPerPod:          30,
			SchedulerCPUPerPod: 20,
		}),
		record("Gangs/many", schedperf.Lockstep, 3, schedperf.Figures{
			PodsPerSecond: 281,
			Seconds:       11.2,
			Throughput:    300,
			Attempts:      3,
			AttemptMean:   900,
			AttemptP99:    1000,
			AlgorithmMean: 200,
			AlgorithmP99:  512.5,
			HeapMB:        910,

			CPUPerPod:          15,
			SchedulerCPUPerPod: 2.5,
		}),
		record("Gangs/ours failed", schedperf.Native, 3, schedperf.Figures{PodsPerSecond: 1}),
		record("Gangs/native failed", schedperf.Lockstep, 3, schedperf.Figures{PodsPerSecond: 2}),
		record("Gangs/too short", schedperf.Native, 3, schedperf.Figures{Seconds: 2}),
		record("Gangs/too short", schedperf.Lockstep, 3, schedperf.Figures{Seconds: 1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "table.txt")
	if *rewrite {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestWriteSummary(t *testing.T) {
	record := func(workload string, profile schedperf.Profile, podsPerSecond, cpu float64) schedperf.Record {
		return schedperf.Record{
			Workload: workload, Profile: profile, Runs: 1,
			Figures: schedperf.Figures{PodsPerSecond: podsPerSecond, SchedulerCPUPerPod: cpu},
		}
	}
	var got bytes.Buffer
	err := schedperf.WriteSummary(&got, []schedperf.Record{
		record("Basic/500", schedperf.Native, 300, 1), record("Basic/500", schedperf.Lockstep, 270, 2),
		record("Basic/5000", schedperf.Native, 125, 2), record("Basic/5000", schedperf.Lockstep, 25, 16),
		record("ours failed", schedperf.Native, 125, 2),
		record("native failed", schedperf.Lockstep, 125, 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `| workload | pods/s, native | ours | ratio | scheduler's CPU, ms a pod, native | ours | ratio |
|---|---|---|---|---|---|---|
| Basic/5000 | 125 | 25 | 0.20× | 2 | 16 | 8× |
| Basic/500 | 300 | 270 | 0.90× | 1 | 2 | 2× |
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedperf.json")
	err := schedperf.WriteFile(path, []schedperf.Record{
		{
			Workload: "A/b",
			Profile:  schedperf.Native,
			Runs:     3,
			Figures: schedperf.Figures{
				PodsPerSecond: 1,
				AttemptMean:   2,
				AttemptP99:    3,
				AlgorithmMean: 3.5,
				AlgorithmP99:  4,
				HeapMB:        5,
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := yaml.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{
			"workload":              "A/b",
			"profile":               "native",
			"runs":                  3.0,
			"pods_per_s":            1.0,
			"attempt_ms_mean":       2.0,
			"attempt_ms_p99":        3.0,
			"algorithm_ms_mean":     3.5,
			"algorithm_ms_p99":      4.0,
			"heap_mb":               5.0,
			"seconds":               0.0,
			"attempts":              0.0,
			"faults":                0.0,
			"scheduling_throughput": 0.0,

			"cpu_ms_per_pod":           0.0,
			"scheduler_cpu_ms_per_pod": 0.0,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestReadItems(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := schedperf.ReadItems(dir); err == nil {
		t.Error("no file: want an error")
	}
	content := `{"version": "v1", "dataItems": [
		{"data": null, "labels": {"Metric": "not applicable"}},
		{"data": {"Average": 41.5, "Perc99": 90}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput"}},
		{"data": {"Average": 12}, "unit": "MB", "labels": {"Metric": "heap_memory_usage"}},
		{"data": {"Duration": 75.25}, "unit": "s", "labels": {"Metric": "SchedulingDuration"}}]}`
	if err := os.WriteFile(filepath.Join(dir, "items.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	podsPerSecond, seconds, err := schedperf.ReadItems(dir)
	if err != nil || podsPerSecond != 41.5 || seconds != 75.25 {
		t.Errorf("got %v pods/s, %v s, %v", podsPerSecond, seconds, err)
	}
}

// All workloads that are compared must be there in the release of Kubernetes that go.mod names.
func TestDerive_FindsAllWorkloads(t *testing.T) {
	kubernetes, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(kubernetes)), "test", "integration", "scheduler_perf")
	for _, w := range append(schedperf.Gangs(), schedperf.Ordinary()...) {
		t.Run(w.String(), func(t *testing.T) {
			upstream, err := os.ReadFile(filepath.Join(dir, w.Dir, "performance-config.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			native, ours := derive(t, upstream, w, ""), derive(t, upstream, w, "/profile.yaml")
			gates, _ := ours["featureGates"].(map[string]any)
			for gate, want := range map[string]bool{
				"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true, "OpportunisticBatching": false,
				"DRAWorkloadResourceClaims": w.Case == "SharedPodGroupResourceClaim", "SchedulerAsyncAPICalls": true,
			} {
				if gates[gate] != want {
					t.Errorf("gate %s is %v, want %t", gate, gates[gate], want)
				}
			}
			workloads, _ := native["workloads"].([]any)
			workload, _ := workloads[0].(map[string]any)
			for _, from := range []map[string]any{native, workload} {
				own, _ := from["featureGates"].(map[string]any)
				for gate := range own {
					if gates[gate] != own[gate] {
						t.Errorf("gate %s is %v, the workload says %v", gate, gates[gate], own[gate])
					}
				}
				delete(from, "featureGates")
			}
			if ours["schedulerConfigPath"] != "/profile.yaml" {
				t.Errorf("the profile is %v", ours["schedulerConfigPath"])
			}
			delete(ours, "featureGates")
			delete(ours, "schedulerConfigPath")
			if diff := cmp.Diff(native, ours); diff != "" {
				t.Errorf("more than profile and gates differs; native -, ours +:\n%s", diff)
			}
		})
	}
}

// derive returns the only test case; it must hold the only workload, without a threshold and with w's parameters.
func derive(t *testing.T, upstream []byte, w schedperf.Workload, profile string) map[string]any {
	t.Helper()
	content, pods, err := schedperf.Derive(upstream, w, profile)
	if err != nil {
		t.Fatal(err)
	}
	var cases []map[string]any
	if err := yaml.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 1 || cases[0]["name"] != w.Case {
		t.Fatalf("the test cases are %v", cases)
	}
	workloads, _ := cases[0]["workloads"].([]any)
	workload, _ := workloads[0].(map[string]any)
	_, limited := workload["threshold"]
	if len(workloads) != 1 || w.Case+"/"+workload["name"].(string) != w.String() || limited {
		t.Fatalf("the workloads are %v", workloads)
	}
	gangs := map[string]int{"SharedPodGroupResourceClaim": 5000, "GangPreemptionBasic": 100, "StarvationPodGroup": 500}
	if want := stdcmp.Or(w.Count, gangs[w.Case], 3000); pods != want {
		t.Errorf("%d pods are measured, want %d", pods, want)
	}
	params, _ := workload["params"].(map[string]any)
	if nodes := nodesOf(params); w.Nodes != 0 && nodes != w.Nodes {
		t.Errorf("%d nodes are created, want %d", nodes, w.Nodes)
	}
	for name, value := range w.Params {
		if params[name] != float64(value) {
			t.Errorf("parameter %s is %v, want %d", name, params[name], value)
		}
	}
	return cases[0]
}

// nodesOf adds up the parameters for the number of nodes: initNodes, or nodesWithDRA and nodesWithoutDRA.
func nodesOf(params map[string]any) int {
	nodes := 0
	for name, value := range params {
		if count, ok := value.(float64); ok && strings.Contains(strings.ToLower(name), "nodes") {
			nodes += int(count)
		}
	}
	return nodes
}

func TestDerive_RefusesUnknownWorkloads(t *testing.T) {
	upstream := []byte("[{name: a, workloads: [{name: b, params: {nodes: 1}}]}]")
	for name, w := range map[string]schedperf.Workload{
		"test case": {Case: "x", Name: "b"},
		"workload":  {Case: "a", Name: "x"},
		"parameter": {Case: "a", Name: "b", Params: map[string]int{"x": 1}},
		"count":     {Case: "a", Name: "b", Measured: []string{"x"}},
	} {
		if _, _, err := schedperf.Derive(upstream, w, ""); err == nil {
			t.Errorf("an unknown %s: want an error", name)
		}
	}
}

func TestSchedulerConfig(t *testing.T) {
	content, err := schedperf.SchedulerConfig()
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		LeaderElection struct{ LeaderElect bool }
		Profiles       []struct{ SchedulerName string }
	}
	config.LeaderElection.LeaderElect = true
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Profiles) != 1 || config.Profiles[0].SchedulerName != "default-scheduler" {
		t.Errorf("the profiles are %v", config.Profiles)
	}
	if config.LeaderElection.LeaderElect {
		t.Error("leader election is on")
	}
}
