package summary

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// Progress is the state of a job on its way.
type Progress struct {
	Name string
	// Members is the number of pods that the job has, or will have according to its gang.
	Members int
	// Placed is the number of them with a node.
	Placed int
	// Started is the number of them that run or have run, Running that of those that run now.
	Started, Running int
	// Outcome is Complete or Failed once the job has ended, and empty before.
	Outcome string
}

// Progress returns the progress of a job by the ledger and the job's last state.
func (l *Ledger) Progress(job JobObservation) Progress {
	members := l.seenOf(job)
	progress := Progress{
		Name:    job.TrainJob.GetName(),
		Members: len(members),
		Outcome: endOf(job.TrainJob).Type,
	}
	for _, member := range members {
		if member.node != "" {
			progress.Placed++
		}
		if member.phase == corev1.PodRunning || member.phase == corev1.PodSucceeded {
			progress.Started++
		}
		if member.phase == corev1.PodRunning {
			progress.Running++
		}
	}
	progress.Members = max(progress.Members, minCount(job.PodGroups))
	return progress
}

// Phase is one of: waiting, placed k/n, running, done, failed.
func (p Progress) Phase() string {
	switch {
	case p.Outcome == Complete:
		return "done"
	case p.Outcome == Failed:
		return "failed"
	case p.Members > 0 && p.Started == p.Members:
		return "running"
	case p.Placed > 0:
		return fmt.Sprintf("placed %d/%d", p.Placed, p.Members)
	}
	return "waiting"
}

// ProgressLine shows all jobs in one line of at most width characters (0: any length): each with its phase, or only the
// number in each phase where that is too long.
func ProgressLine(jobs []Progress, width int) string {
	each := make([]string, len(jobs))
	count := map[string]int{}
	for i, job := range jobs {
		each[i] = job.Name + " " + job.Phase()
		kind, _, _ := strings.Cut(job.Phase(), " ")
		count[kind]++
	}
	line := strings.Join(each, " · ")
	if width == 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	var counts []string
	for _, kind := range []string{"waiting", "placed", "running", "done", "failed"} {
		if count[kind] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[kind], kind))
		}
	}
	line = fmt.Sprintf("%d jobs: %s", len(jobs), strings.Join(counts, ", "))
	return cutTo(line, width)
}

// cutTo shortens ASCII text.
func cutTo(line string, width int) string {
	return line[:min(len(line), cmp.Or(width, len(line)))]
}
