package reportload

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Result holds the measurements of one round.
type Result struct {
	Jobs  int  `json:"jobs"`
	Fresh bool `json:"fresh_connections"`
	// Believed is the time until the first report of each job was accepted when all began at once, and Refused the
	// number that were answered with 429 until then.
	Believed float64 `json:"believed_seconds"`
	Refused  int     `json:"refused_until_believed"`
	// Seconds is the time that was measured afterwards; all below is of that time.
	Seconds float64     `json:"seconds"`
	Codes   map[int]int `json:"codes"`
	P50     float64     `json:"p50_ms"`
	P99     float64     `json:"p99_ms"`
	Longest float64     `json:"longest_ms"`
	// Writes are the controller's attempts to write a report, by result, and Calls all of its requests to the API
	// server.
	Writes map[string]float64 `json:"writes"`
	Calls  float64            `json:"calls"`
	// Cores are processor seconds per second by component.
	Cores map[string]float64 `json:"cores"`
	// Reconciles and ReconcileMilliseconds are the controller's.
	Reconciles            float64 `json:"reconciles"`
	ReconcileMilliseconds float64 `json:"reconcile_ms"`
	MemoryMB              float64 `json:"memory_mb"`
	// AgeP50, AgeP99 and AgeLongest are the ages of the reports that TrainJobs show, in seconds, sampled each second.
	AgeP50     float64 `json:"age_p50_seconds"`
	AgeP99     float64 `json:"age_p99_seconds"`
	AgeLongest float64 `json:"age_longest_seconds"`
	// Backwards counts the times that an older report replaced a newer one.
	Backwards int `json:"backwards"`
	// Behind is the number of jobs that did not show their newest accepted report when the load ended, and Lost the
	// number that still did not after the controller was stopped gracefully.
	Behind int `json:"behind"`
	Lost   int `json:"lost"`
	// Replaced is the time in seconds from stopping that controller, which flushes its pending reports, until the next
	// one is ready.
	Replaced float64 `json:"replaced_seconds"`
}

// SetLatencies takes over durations of requests.
func (r *Result) SetLatencies(took []time.Duration) {
	const each = float64(time.Millisecond)
	r.P50, r.P99 = float64(Quantile(took, 0.5))/each, float64(Quantile(took, 0.99))/each
	r.Longest = float64(Quantile(took, 1)) / each
}

// SetAges takes over ages of reports.
func (r *Result) SetAges(ages []time.Duration) {
	r.AgeP50, r.AgeP99 = Quantile(ages, 0.5).Seconds(), Quantile(ages, 0.99).Seconds()
	r.AgeLongest = Quantile(ages, 1).Seconds()
}

// Write prints results as two tables.
func Write(out io.Writer, results []Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(table, format+"\t\n", values...) } // Flush returns the error
	line(
		"jobs\tconnections\tall believed s\t429 until then\treports/s\tanswers\tp50 ms\tp99 ms\tlongest ms\tage p50 s\tp99 s\tlongest s\tbackwards\theld at the stop\tlost\treplaced s",
	)
	for i := range results {
		r, total := &results[i], 0
		for _, n := range r.Codes {
			total += n
		}
		line(
			"%d\t%s\t%.0f\t%d\t%.0f\t%s\t%.1f\t%.1f\t%.0f\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d\t%.1f",
			r.Jobs,
			r.connections(),
			r.Believed,
			r.Refused,
			float64(
				total,
			)/r.Seconds,
			printCodes(r.Codes),
			r.P50,
			r.P99,
			r.Longest,
			r.AgeP50,
			r.AgeP99,
			r.AgeLongest,
			r.Backwards,
			r.Behind,
			r.Lost,
			r.Replaced,
		)
	}
	line("")
	line(
		"jobs\tconnections\twrites/s\tconflicts/s\tother failures/s\tcalls/s\treconciles/s\treconcile took ms\tcores by component\tmemory MB",
	)
	for i := range results {
		r := &results[i]
		written, conflicts, failed := r.writes()
		line(
			"%d\t%s\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%.2f\t%s\t%.0f",
			r.Jobs,
			r.connections(),
			written/r.Seconds,
			conflicts/r.Seconds,
			failed/r.Seconds,
			r.Calls/r.Seconds,
			r.Reconciles/r.Seconds,
			r.ReconcileMilliseconds,
			printCores(r.Cores),
			r.MemoryMB,
		)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the tables: %w", err)
	}
	return nil
}

// writes sums the attempts to write a report.
func (r *Result) writes() (written, conflicts, failed float64) {
	for result, n := range r.Writes {
		switch result {
		case "written":
			written += n
		case "conflict":
			conflicts += n
		default:
			failed += n
		}
	}
	return written, conflicts, failed
}

func (r *Result) connections() string {
	if r.Fresh {
		return "each its own"
	}
	return "kept"
}

func printCodes(codes map[int]int) string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		name := strconv.Itoa(code)
		if code == 0 {
			name = "none"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, codes[code]))
	}
	return strings.Join(parts, ", ")
}

func printCores(cores map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(cores)) {
		const visible = 0.005
		if cores[name] >= visible {
			parts = append(parts, fmt.Sprintf("%s %.2f", name, cores[name]))
		}
	}
	return strings.Join(parts, ", ")
}
