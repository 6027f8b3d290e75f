package measure

// Scorecard holds the results of one run: the object that lockstep simulate prints, and that stands in scorecard.json.
// Names of its fields are a contract. Fractions are between 0 and 1; durations are seconds.
type Scorecard struct {
	Scheduler  string `json:"scheduler"`
	Engine     string `json:"engine"`
	Fleet      string `json:"fleet"`
	Trace      string `json:"trace"`
	Seed       uint64 `json:"seed"`
	Commit     string `json:"commit"`
	ConfigHash string `json:"config_hash"`
	// Source is the origin of the workload; Synthetic says that it was made.
	Source    string  `json:"source"`
	Synthetic bool    `json:"synthetic"`
	Load      float64 `json:"load"`
	Estimates float64 `json:"estimates"`
	// Nodes and GPUs are the fleet's.
	Nodes int   `json:"nodes"`
	GPUs  int64 `json:"gpus"`
	// TieRule is the scheduler's choice between equally good places, Machine the machine on which the speed was
	// measured.
	TieRule string `json:"tie_rule"`
	Machine string `json:"machine"`
	// Notes are those about the inputs that a reader needs.
	Notes []string `json:"notes,omitempty"`
	// Partial is the reason why the run did not end; empty if it did.
	Partial string `json:"partial,omitempty"`

	Gangs Gangs `json:"gangs"`
	Pods  Pods  `json:"pods"`
	// Window is the time that job metrics and means over time cover; the counts of gangs and pods, the makespan, the
	// cost of preemption, violations and the speed are of the whole run.
	Window          Window           `json:"window"`
	Wait            Times            `json:"wait_seconds"`
	JCT             Times            `json:"jct_seconds"`
	Makespan        float64          `json:"makespan_seconds"`
	BoundedSlowdown Slowdown         `json:"bounded_slowdown"`
	Quality         Quality          `json:"quality"`
	Utilization     Utilization      `json:"utilisation"` //nolint:misspell // recorded results have this key
	Goodput         Goodput          `json:"goodput"`
	Fragmentation   Fragmentation    `json:"fragmentation"`
	Largest         LargestPlaceable `json:"largest_placeable"`
	Preemption      Preemption       `json:"preemption"`
	// Costs is nil if nothing but running costs time.
	Costs      *Costs     `json:"costs,omitempty"`
	Violations Violations `json:"violations"`
	DecisionMS Latency    `json:"decision_ms"`
	// DecisionMSPlaced and DecisionMSRefused are those of the decisions that led to a start, and of those that did not.
	DecisionMSPlaced  Latency    `json:"decision_ms_placed"`
	DecisionMSRefused Latency    `json:"decision_ms_refused"`
	Throughput        Throughput `json:"throughput"`
	// ByGPUHours has the job metrics weighted by GPU-hours, Classes those of each size class that has jobs.
	ByGPUHours Weighted `json:"by_gpu_hours"`
	Classes    []Class  `json:"size_classes"`
	// AllocationAtArrival is for runs of openb only: per cent of GPUs allocated, by per cent of GPUs requested.
	AllocationAtArrival map[string]float64 `json:"allocation_at_arrival,omitempty"`
}

// Gangs counts the jobs.
type Gangs struct {
	Submitted int `json:"submitted"`
	// Placed is the number that started at least once, Pending the number that wait at the end.
	Placed   int `json:"placed"`
	Finished int `json:"finished"`
	Pending  int `json:"pending"`
}

// Pods counts starts of pods, those of second starts too.
type Pods struct {
	Placed int `json:"placed"`
}

// Window is the part of the run that job metrics and means over time are of, in seconds since the beginning.
type Window struct {
	From float64 `json:"from_seconds"`
	To   float64 `json:"to_seconds"`
	// Jobs is the number that arrived in it.
	Jobs int `json:"jobs"`
	// Rule explains in a sentence the choice of the window.
	Rule string `json:"rule"`
}

// Times summarizes durations of jobs, in seconds. A percentile is the smallest of them that at least as many per cent
// do not exceed.
type Times struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Slowdown summarizes bounded slowdowns.
type Slowdown struct {
	Mean          float64 `json:"mean"`
	GeometricMean float64 `json:"geometric_mean"`
	P95           float64 `json:"p95"`
}

// Quality compares placements with the best that was possible when they were made.
type Quality struct {
	MeanQ   float64 `json:"mean_q"`
	P05Q    float64 `json:"p05_q"`
	MeanGap float64 `json:"mean_gap"`
	P95Gap  float64 `json:"p95_gap"`
	// Split is the number of starts that used several NVLink domains (or, without such, several of the innermost
	// network domains) though one would have held them; RankInversions the number of boundaries that rings cross for
	// nothing.
	Split          int `json:"split_domains"`
	RankInversions int `json:"rank_inversions"`
	// Samples is the number of starts of gangs of several members behind these: every Every-th one of the window. All
	// figures are 1, or 0, without any.
	Samples int `json:"samples"`
	Every   int `json:"every"`
	// Bounded is the number of samples whose best is a proven bound that perhaps no placement reaches, so that Q may be
	// too low.
	Bounded int `json:"bounded"`
}

// Utilization is the part of the accelerators that is in use, of those on nodes that are open and there. BusyMean is of
// the time in which jobs wait, which is BusySeconds; 0 if none ever does.
type Utilization struct {
	Mean        float64 `json:"mean"`
	BusyMean    float64 `json:"busy_mean"`
	BusySeconds float64 `json:"busy_seconds"`
	Peak        float64 `json:"peak"`
}

// Goodput is useful work: the work of accelerators in the window, less the work that was lost because its job was
// preempted or disrupted later and, where they cost time, less assembly, reloading, and the additional time of bad
// placements. Mean is the part of the accelerators on nodes that are open and there.
type Goodput struct {
	Mean     float64 `json:"mean"`
	GPUHours float64 `json:"gpu_hours"`
}

// Fragmentation is the part of the free accelerators that is of no use to the mix of gangs of the trace, each weighted
// by its request. Mean is of samples at equal distances, End is the last of them in the window.
type Fragmentation struct {
	Mean float64 `json:"mean"`
	End  float64 `json:"end"`
}

// LargestPlaceable is the number of accelerators of the largest placeable gang of whole nodes that has to be in one
// domain of the outermost level, as samples over time.
type LargestPlaceable struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
}

// Preemption counts the gangs that were preempted, and the accelerator-hours of nominal work since the last checkpoint
// that were lost with them.
type Preemption struct {
	Gangs    int     `json:"gangs"`
	GPUHours float64 `json:"gpu_hours"`
	// Disrupted and DisruptedGPUHours are the same for gangs that lost nodes.
	Disrupted         int     `json:"disrupted"`
	DisruptedGPUHours float64 `json:"disrupted_gpu_hours"`
	// Shrunk and Grown count the changes after which elastic gangs continued with fewer members, and with more;
	// ResizedGPUHours is the work that was lost with them.
	Shrunk          int     `json:"shrunk,omitempty"`
	Grown           int     `json:"grown,omitempty"`
	ResizedGPUHours float64 `json:"resized_gpu_hours,omitempty"`
}

// Violations counts starts that broke a rule. All of them are 0 for a correct scheduler.
type Violations struct {
	// PartialGangs are starts with fewer members than have to start together.
	PartialGangs int `json:"partial_gangs"`
	// RequiredLevel are starts that are not in one domain of their required level, or with a segment that is not in one
	// of its level; NVLink are those among them whose level is one of NVLink domains.
	RequiredLevel int `json:"required_level"`
	NVLink        int `json:"nvlink"`
	// DRA are starts that take more devices than a node has left, DoubleBooking those that take more of anything else,
	// or anything on a node that is closed or not there.
	DRA           int `json:"dra"`
	DoubleBooking int `json:"double_booking"`
	// Unfinished are runs that ended before their work was done. It is counted where placements or starts cost time.
	Unfinished int `json:"unfinished,omitempty"`
}

// Latency summarizes decisions, in milliseconds of wall time; percentiles are right to a hundredth.
type Latency struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Throughput is per wall time: starts by all of it, which is WallSeconds. DecidingSeconds is the part that was spent on
// decisions.
type Throughput struct {
	GangsPerSecond  float64 `json:"gangs_per_s"`
	PodsPerSecond   float64 `json:"pods_per_s"`
	WallSeconds     float64 `json:"wall_s"`
	DecidingSeconds float64 `json:"deciding_s"`
}

// Weighted are means in which a job counts as much as the GPU-hours that it asks for.
type Weighted struct {
	Wait            float64 `json:"wait_seconds_mean"`
	JCT             float64 `json:"jct_seconds_mean"`
	BoundedSlowdown float64 `json:"bounded_slowdown_mean"`
	Q               float64 `json:"quality_mean_q"`
}

// Class are the jobs of a size.
type Class struct {
	// Name is one of: no GPU, 1 GPU, one node, 2-4 nodes, 5-16 nodes, 17-64 nodes, more than 64 nodes. The number of
	// nodes of a job follows from its accelerators and the fleet's largest node, so that its class is the same for any
	// scheduler.
	Name     string  `json:"name"`
	Jobs     int     `json:"jobs"`
	Pending  int     `json:"pending"`
	GPUHours float64 `json:"gpu_hours"`
	Wait     Times   `json:"wait_seconds"`
	JCT      Times   `json:"jct_seconds"`
	MeanQ    float64 `json:"mean_q"`
}
