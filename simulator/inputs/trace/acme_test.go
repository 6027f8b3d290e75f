package trace_test

import (
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// clusters are those of Acme, with the published figures of all their GPU jobs, and the points within which the shares
// of GPU time are met: the tables of Seren contradict each other.
func clusters() map[string]struct{ jobs, gpus, seconds, median, gpuHours, within float64 } {
	return map[string]struct{ jobs, gpus, seconds, median, gpuHours, within float64 }{
		"Kalos": {19907, 26.77, 1259.689, 124, 74.42, 0.5},
		"Seren": {101015, 5.68, 1414.335, 122, 9.002, 2},
	}
}

// cells is a line of a published table: its numbers by their columns.
type cells map[string]float64

// tableOf reads the rows of a table that are about a cluster, by their other names; the tables in data are read once
// more, by other means.
func tableOf(t *testing.T, file, cluster string) map[string][]cells {
	t.Helper()
	in, err := os.Open("data/acme/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]cells{}
	for _, row := range rows[1:] {
		name, numbers := "", cells{}
		for i, text := range row {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				numbers[rows[0][i]] = x
			} else if i > 0 {
				name = strings.ToLower(text)
			}
		}
		if row[0] == cluster {
			of[name] = append(of[name], numbers)
		}
	}
	return of
}

// percent is the share of the jobs that are so, each counted by its weight.
func percent(jobs []trace.Job, weight func(trace.Job) float64, so func(trace.Job) bool) float64 {
	var part, all float64
	for _, j := range jobs {
		w := weight(j)
		all += w
		if so(j) {
			part += w
		}
	}
	return 100 * part / all
}

func each(trace.Job) float64 { return 1 }

func near(t *testing.T, got, want, within float64, what ...string) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > within {
		t.Errorf("%s: %.3f, published is %.3f", strings.Join(what, " "), got, want)
	}
}

// A made trace has the marginals from which it is made, whatever the seed is, counted by jobs and by GPU time.
func TestAcme_HasItsMarginals(t *testing.T) {
	for cluster, summary := range clusters() {
		for seed := range uint64(3) {
			tr, err := trace.Open("acme-"+strings.ToLower(cluster), seed)
			if err != nil {
				t.Fatal(err)
			}
			if len(tr.Jobs) != int(summary.jobs) || !tr.Synthetic || !strings.Contains(tr.Source, "synthetic") {
				t.Errorf("%s: %d jobs, %s", cluster, len(tr.Jobs), tr.Source)
			}
			types(t, cluster, tr.Jobs)
			sizes(t, cluster, tr.Jobs)
			durations(t, cluster, tr.Jobs)
			var gpus, seconds, hours float64
			for _, j := range tr.Jobs {
				hours += j.GPUHours() / summary.jobs
				gpus += float64(j.GPUs()) / summary.jobs
				seconds += j.Duration.Seconds() / summary.jobs
			}
			near(t, hours, summary.gpuHours, 0.05*summary.gpuHours, cluster, "mean GPU hours")
			near(t, gpus, summary.gpus, 0.8, cluster, "mean GPUs")
			near(t, seconds, summary.seconds, 0.17*summary.seconds, cluster, "mean seconds")
		}
	}
}

func types(t *testing.T, cluster string, jobs []trace.Job) {
	t.Helper()
	for kind, rows := range tableOf(t, "type_shares.csv", cluster) {
		of := func(j trace.Job) bool { return j.Tenant == kind }
		near(t, percent(jobs, each, of), rows[0]["pct_of_gpu_jobs"], 0.1, cluster, kind, "jobs")
		near(
			t,
			percent(jobs, trace.Job.GPUHours, of),
			rows[0]["pct_of_gpu_time"],
			clusters()[cluster].within,
			cluster,
			kind,
			"GPU time",
		)
	}
	for _, j := range jobs {
		if (j.Tenant == "evaluation" && (j.GPUs() > 8 || !j.Preemptible)) || (j.Tenant == "pretrain" && j.GPUs() <= 8) {
			t.Fatalf("%+v", j)
		}
	}
}

func sizes(t *testing.T, cluster string, jobs []trace.Job) {
	t.Helper()
	for _, row := range tableOf(t, "gpunum_cdf_by_trace.csv", cluster)[""] {
		most := row["gpus_le"]
		of := func(j trace.Job) bool { return j.GPUs() <= int(most) }
		where := strconv.FormatFloat(most, 'f', 0, 64)
		near(t, percent(jobs, each, of), row["cdf_pct_of_gpu_jobs"], 0.01, cluster, where, "GPUs, jobs")
		near(
			t,
			percent(jobs, trace.Job.GPUHours, of),
			row["cdf_pct_of_gpu_time"],
			clusters()[cluster].within,
			cluster,
			where,
			"GPUs, GPU time",
		)
	}
}

func durations(t *testing.T, cluster string, jobs []trace.Job) {
	t.Helper()
	byType := tableOf(t, "duration_cdf_by_type.csv", cluster)
	byType["all"] = tableOf(t, "duration_cdf_by_trace.csv", cluster)[""]
	for kind, rows := range byType {
		same := jobs
		if kind != "all" {
			same = slices.DeleteFunc(slices.Clone(jobs), func(j trace.Job) bool { return j.Tenant != kind })
		}
		for _, row := range rows {
			most := row["duration_le_s"]
			of := func(j trace.Job) bool { return j.Duration.Seconds() <= most }
			within := 100/float64(len(same)) + 0.001
			if kind == "all" {
				within = 0.5 // it was read off another figure, and shares of types are rounded
			}
			near(t, percent(same, each, of), row["cdf_pct_of_gpu_jobs"], within, cluster, kind,
				strconv.FormatFloat(most, 'f', 0, 64), "s")
		}
	}
}

// The median that is published lies within an octave of the tables; it is not one of their numbers.
func TestAcme_MedianNearThePublished(t *testing.T) {
	for cluster, summary := range clusters() {
		tr, err := trace.Open("acme-"+strings.ToLower(cluster), 5)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(tr.Jobs, func(a, b trace.Job) int { return cmp.Compare(a.Duration, b.Duration) })
		near(t, tr.Jobs[len(tr.Jobs)/2].Duration.Seconds(), summary.median, 0.15*summary.median, cluster, "median")
	}
}

// Twice as many submissions arrive in an hour of the day as in one of the night, days are alike, and evaluations arrive
// together.
func TestAcme_ArrivalsByHourAndBatch(t *testing.T) {
	tr, err := trace.Open("acme-seren", 1)
	if err != nil {
		t.Fatal(err)
	}
	var hours [24]float64
	days, batches := map[int]float64{}, map[float64]int{}
	for _, j := range tr.Jobs {
		if j.Tenant == "evaluation" {
			batches[j.Submit.Seconds()]++
			continue
		}
		hours[int(j.Submit.Hours())%24]++
		days[int(j.Submit.Hours())/24]++
	}
	others := 0.0
	for _, n := range hours {
		others += n
	}
	for h, n := range hours {
		share := 1.0
		if h >= 9 && h < 21 {
			share = 2
		}
		want := others * share / 36
		near(t, n, want, 5*math.Sqrt(want), "hour", strconv.Itoa(h))
	}
	for d, n := range days {
		near(t, n, others/28, 5*math.Sqrt(others/28), "day", strconv.Itoa(d))
	}
	var evaluations float64
	for _, n := range batches {
		evaluations += float64(n)
	}
	near(t, evaluations/float64(len(batches)), 32, 3, "evaluations in a batch")
	if len(days) != 28 {
		t.Errorf("%d days", len(days))
	}
}
