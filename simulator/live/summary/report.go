package summary

import "github.com/lockstep-project/lockstep/topology"

// The outcomes of a job.
const (
	Complete = "Complete"
	Failed   = "Failed"
	Unplaced = "Unplaced"
)

// A Report is the user's summary of a run. Its JSON is that of lockstep up -o json.
type Report struct {
	Fleet      string      `json:"fleet"`
	Nodes      int         `json:"nodes"`
	Mode       string      `json:"mode"`
	Components []Component `json:"components"`
	Kubeconfig string      `json:"kubeconfig"`
	Jobs       []Job       `json:"jobs"`

	// Levels is the order in which WriteTable names domains, outermost first.
	Levels []topology.Level `json:"-"`
}

// A Component is one program of the run.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// A Job is the summary of one TrainJob.
type Job struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Framework string `json:"framework"`
	// Outcome is Complete, Failed or Unplaced.
	Outcome string `json:"outcome"`
	// WaitSeconds is from submission until the last member was bound, or until the job was given up.
	WaitSeconds float64 `json:"wait_seconds"`
	// RunSeconds is from the first member's binding to the job's end.
	RunSeconds float64 `json:"run_seconds"`
	// Reason is the one for which the job failed or was not placed; empty for a complete one.
	Reason string `json:"reason"`
	Ranks  []Rank `json:"ranks"`
}

// A Rank is one member of a job and its node.
type Rank struct {
	Rank int    `json:"rank"`
	Pod  string `json:"pod"`
	// Node is empty for a member that was not placed.
	Node string `json:"node"`
	// Domains is the node's domain at each level for which it has a label.
	Domains map[string]string `json:"domains"`
}

// AllComplete reports whether every job of the run is complete: the difference between exit 0 and 1.
func (r Report) AllComplete() bool {
	for _, job := range r.Jobs {
		if job.Outcome != Complete {
			return false
		}
	}
	return true
}
