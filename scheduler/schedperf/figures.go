package schedperf

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Figures are the measurements of one run, or the medians of several.
type Figures struct {
	// PodsPerSecond is the number of measured pods by Seconds.
	PodsPerSecond float64 `json:"pods_per_s"`
	// AttemptMean, AttemptP99, AlgorithmMean and AlgorithmP99 are in milliseconds, over all attempts of the run
	// whatever their result, those for pods that were there before the measured ones included (as in scheduler_perf's
	// own figures). The p99 are interpolated between a histogram's bounds and end at LastBound.
	//
	// An attempt ends after the condition of the PodGroup is written, which the framework waits for; the algorithm does
	// not.
	AttemptMean   float64 `json:"attempt_ms_mean"`
	AttemptP99    float64 `json:"attempt_ms_p99"`
	AlgorithmMean float64 `json:"algorithm_ms_mean"`
	AlgorithmP99  float64 `json:"algorithm_ms_p99"`
	// HeapMB is the live heap in MiB when the last measured pod was bound: of the scheduler, but also of the API
	// server, the controllers and the benchmark, which share its process. etcd is not in.
	HeapMB float64 `json:"heap_mb"`
	// Seconds is scheduler_perf's SchedulingDuration: from the creation of the first measured pod until all are seen
	// bound, which it looks for once a second.
	Seconds float64 `json:"seconds"`
	// Throughput is scheduler_perf's SchedulingThroughput in pods per second, averaged over the seconds that it counts:
	// its clock starts only when the first pods are bound, which flatters a scheduler that first thinks long and then
	// binds many. It is 0 if it saw less than two seconds.
	Throughput float64 `json:"scheduling_throughput"`
	// Attempts is the number of attempts behind AttemptMean, Faults the number of those with the result error: neither
	// scheduled nor unschedulable.
	Attempts float64 `json:"attempts"`
	Faults   float64 `json:"faults"`
	// CPUPerPod is the CPU time per measured pod in milliseconds, over Seconds, of the whole process: see CPU.
	CPUPerPod float64 `json:"cpu_ms_per_pod"`
	// SchedulerCPUPerPod is the part of CPUPerPod in kube-scheduler's and Lockstep's functions.
	SchedulerCPUPerPod float64 `json:"scheduler_cpu_ms_per_pod"`
}

// LastBound is the last finite bound of the histograms that the p99 are read from, in milliseconds.
const LastBound = 16384

// Record is one line of the results: the medians of a workload with a profile.
type Record struct {
	Workload string  `json:"workload"`
	Profile  Profile `json:"profile"`
	Figures

	// Runs is the number of runs behind the medians.
	Runs int `json:"runs"`
}

// fields are the figures in a fixed order.
func (f *Figures) fields() []*float64 {
	return []*float64{
		&f.PodsPerSecond,
		&f.Seconds,
		&f.Throughput,
		&f.Attempts,
		&f.Faults,
		&f.AttemptMean,
		&f.AttemptP99,
		&f.AlgorithmMean,
		&f.AlgorithmP99,
		&f.CPUPerPod,
		&f.SchedulerCPUPerPod,
		&f.HeapMB,
	}
}

// atLeast reports whether the field, one of fields, is a lower bound only.
func (f *Figures) atLeast(field *float64) bool {
	return (field == &f.AttemptP99 || field == &f.AlgorithmP99) && *field >= LastBound
}

// Median is, for each figure by itself, the middle value of the runs, or the mean of the two in the middle; of no runs
// it is zero.
func Median(runs []Figures) Figures {
	var out Figures
	if len(runs) == 0 {
		return out
	}
	for i, field := range out.fields() {
		values := make([]float64, len(runs))
		for j := range runs {
			values[j] = *runs[j].fields()[i]
		}
		slices.Sort(values)
		half := len(values) / 2
		*field = values[half]
		if len(values)%2 == 0 {
			*field = (values[half-1] + values[half]) / 2
		}
		*field = math.Round(*field*1000) / 1000
	}
	return out
}

// Ratio is each figure of ours as a multiple of the native one; NaN where that is zero.
func Ratio(native, ours Figures) Figures {
	var out Figures
	for i, field := range out.fields() {
		*field = math.NaN()
		if base := *native.fields()[i]; base != 0 {
			*field = *ours.fields()[i] / base
		}
	}
	return out
}

// WriteFile writes the records as an indented JSON list.
func WriteFile(path string, records []Record) error {
	content, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// ReadItems takes Throughput and Seconds from the file of data items that scheduler_perf left in the folder.
func ReadItems(dir string) (throughput, seconds float64, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) != 1 {
		return 0, 0, errors.Join(fmt.Errorf("scheduler_perf left %d files of data items", len(paths)), err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		return 0, 0, fmt.Errorf("reading scheduler_perf's data items: %w", err)
	}
	var items struct {
		DataItems []struct {
			Data   map[string]float64 `json:"data"`
			Labels map[string]string  `json:"labels"`
		} `json:"dataItems"`
	}
	if err := json.Unmarshal(content, &items); err != nil {
		return 0, 0, fmt.Errorf("parsing scheduler_perf's data items: %w", err)
	}
	for _, item := range items.DataItems {
		switch item.Labels["Metric"] {
		case "SchedulingThroughput":
			throughput = item.Data["Average"]
		case "SchedulingDuration":
			seconds = item.Data["Duration"]
		}
	}
	if seconds == 0 {
		return 0, 0, errors.New("scheduler_perf measured no duration")
	}
	return throughput, seconds, nil
}
