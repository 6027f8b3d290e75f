package loadtest

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is all that one run of the benchmark measured.
type Report struct {
	// Commit is the measured one, Processors the number of cores, and Load the number of tasks that the machine ran by
	// itself before.
	Commit     string   `json:"commit"`
	Processors int      `json:"processors"`
	Load       string   `json:"load"`
	Rushes     []Result `json:"rushes"`
	Costs      []Cost   `json:"costs"`
	// Restarts are those of the controller.
	Restarts []Restart `json:"restarts"`
	// Crowds are the delays of other tenants behind one with many jobs.
	Crowds []Crowd `json:"crowds"`
}

// Write prints the report as tables.
func (r Report) Write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(table, format+"\t\n", values...) } // Flush returns the error
	_, _ = fmt.Fprintf(out, "%d processors, load before %s, commit %s\n\n", r.Processors, r.Load, r.Commit)
	line(
		"jobs\tgang\tcreated\tall created s\tJobSets s\tpods s\tAPI calls/job\treconciles/job\tCPU ms/job\treconcile took ms",
	)
	for _, rush := range r.Rushes {
		how, first := "running", rush.Pods
		if rush.Suspend {
			how = "suspended"
		}
		line("%d\t%s\t%s\t%.1f\t%.1f\t%s\t%s", rush.Jobs, rush.Gang, how, rush.Created, rush.JobSets, seconds(first),
			rush.Making.each(rush.Jobs))
		if rush.Resuming != nil {
			line("\t\tresumed\t\t%.1f\t%s\t%s", rush.Resumed, seconds(rush.ResumedPods), rush.Resuming.each(rush.Jobs))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	_, _ = fmt.Fprintln(out)
	line("suspended jobs that exist\treconciles\tCPU ms/reconcile\ttook ms\tAPI calls/reconcile\tmemory MB")
	for _, cost := range r.Costs {
		line("%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f", cost.Jobs, cost.Usage.Reconciles, cost.CPUMillis(), cost.Millis(),
			ratio(cost.Usage.Total(), cost.Usage.Reconciles), cost.Usage.Memory/1e6)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	_, _ = fmt.Fprintln(out)
	line("suspended jobs at a restart\tready s\tnew JobSet s\tall seen s\tAPI calls\tcalls/job\tCPU s\tmemory MB")
	for _, restart := range r.Restarts {
		line("%d\t%.1f\t%.1f\t%.1f\t%.0f\t%.3f\t%.1f\t%.0f", restart.Jobs, restart.Ready, restart.NewJob, restart.Seen,
			restart.Usage.Total(), restart.CallsPerJob(), restart.Usage.CPU, restart.Usage.Memory/1e6)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	_, _ = fmt.Fprintln(out)
	line("jobs of one tenant\tahead\tdelay of another's first job s\tworst s")
	for _, crowd := range r.Crowds {
		line("%d\t%v\t%.2f\t%.2f", crowd.Jobs, crowd.Ahead, crowd.Delays, crowd.Worst())
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// each is the usage per job, as cells of the table.
func (u Usage) each(jobs int) string {
	n := float64(jobs)
	return fmt.Sprintf(
		"%.2f\t%.2f\t%.2f\t%.2f",
		u.Total()/n,
		u.Reconciles/n,
		1000*u.CPU/n,
		1000*ratio(u.Seconds, u.Reconciles),
	)
}

func seconds(value float64) string {
	if value == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", value)
}
