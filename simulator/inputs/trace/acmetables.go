package trace

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// whole is 100 per cent, in the units in which shares are stored: a thousandth of a per cent.
const whole = 100_000

// acmeTables holds the published figures of the GPU jobs of one cluster of Acme.
type acmeTables struct {
	// jobs is their number, gpuSeconds their total time, longest the run time of the longest in seconds.
	jobs, gpuSeconds, longest int64
	types                     []acmeType
	// sizes are in ascending order.
	sizes []acmeSize
}

// acmeType is a type of jobs: its shares of the jobs and of the GPU time, and its run times.
type acmeType struct {
	name       string
	jobs, time int64
	durations  []acmeDuration
}

// acmeDuration is the share of a type's jobs that run at most so many seconds. Seconds are powers of two, from 1 on.
type acmeDuration struct {
	seconds, jobs int64
}

// acmeSize holds the shares of the jobs and of the GPU time that are in jobs of at most so many GPUs.
type acmeSize struct {
	gpus       int
	jobs, time int64
}

// readAcme reads the built-in tables of a cluster, Kalos or Seren.
func readAcme(cluster string) (acmeTables, error) {
	var a acmeTables
	err := builtinRows("cluster_summary.csv", "id", cluster, func(t *table) {
		a.jobs = t.number("gpu_job_num", math.MaxInt32)
		a.longest = t.hundredths("max_run_time_gpu") / 100
		a.gpuSeconds = (t.hundredths("complete_gpu_time") + t.hundredths("cancel_gpu_time") +
			t.hundredths("fail_gpu_time")) / 100
	})
	if err != nil {
		return a, err
	}
	err = builtinRows("type_shares.csv", "cluster", cluster, func(t *table) {
		a.types = append(a.types, acmeType{
			name: t.text("type"), jobs: t.share("pct_of_gpu_jobs"), time: t.share("pct_of_gpu_time"),
		})
	})
	if err != nil {
		return a, err
	}
	err = builtinRows("gpunum_cdf_by_trace.csv", "trace", cluster, func(t *table) {
		a.sizes = append(a.sizes, acmeSize{
			gpus: int(t.number("gpus_le", MostPods)), jobs: t.share("cdf_pct_of_gpu_jobs"),
			time: t.share("cdf_pct_of_gpu_time"),
		})
	})
	if err != nil {
		return a, err
	}
	return a, builtinRows("duration_cdf_by_type.csv", "cluster", cluster, func(t *table) {
		for i := range a.types {
			if a.types[i].name == t.text("type") {
				a.types[i].durations = append(a.types[i].durations, acmeDuration{
					seconds: t.number("duration_le_s", mostSeconds), jobs: t.share("cdf_pct_of_gpu_jobs"),
				})
			}
		}
	})
}

// builtinRows shows the rows of a table whose column is that value.
func builtinRows(name, column, value string, row func(*table)) error {
	file := "data/acme/" + name
	text, err := published.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading what is built in: %w", err)
	}
	t, err := newTable(bytes.NewReader(text), file, column)
	if err != nil {
		return err
	}
	for t.next() {
		if t.text(column) == value {
			row(t)
		}
	}
	return t.fault("a row")
}

// share is a field with per cent, in units of whole.
func (t *table) share(column string) int64 {
	return t.scaled(column, whole/100)
}

// hundredths is a field with a number above zero, such as 1209604.0, in hundredths.
func (t *table) hundredths(column string) int64 {
	return t.scaled(column, 100)
}

func (t *table) scaled(column string, by float64) int64 {
	text := t.text(column)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1e12) {
		t.refuse(fmt.Sprintf("%s is %q", column, text), "write a number from 0 on")
		return 0
	}
	return int64(math.Round(x * by))
}
