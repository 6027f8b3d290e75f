package measure

// Scorecard is what came of one run: the object that lockstep simulate prints, and that stands in scorecard.json. Names of
// its fields are a contract. Fractions are between 0 and 1; durations are seconds.
type Scorecard struct {
	Scheduler  string `json:"scheduler"`
	Engine     string `json:"engine"`
	Fleet      string `json:"fleet"`
	Trace      string `json:"trace"`
	Seed       uint64 `json:"seed"`
	Commit     string `json:"commit"`
	ConfigHash string `json:"config_hash"`
	// Source says where the workload is from; Synthetic that it was made.
	Source    string  `json:"source"`
	Synthetic bool    `json:"synthetic"`
	Load      float64 `json:"load"`
	Estimates float64 `json:"estimates"`
	// Nodes and GPUs are the fleet's.
	Nodes int   `json:"nodes"`
	GPUs  int64 `json:"gpus"`
	// TieRule says how the scheduler chooses between what it holds for equally good, Machine what the speed was measured on.
	TieRule string `json:"tie_rule"`
	Machine string `json:"machine"`
	// Notes are what people have to know about the inputs.
	Notes []string `json:"notes,omitempty"`
	// Partial says why the run did not come to its end; empty if it did.
	Partial string `json:"partial,omitempty"`

	Gangs           Gangs            `json:"gangs"`
	Pods            Pods             `json:"pods"`
	Window          Window           `json:"window"`
	Wait            Times            `json:"wait_seconds"`
	JCT             Times            `json:"jct_seconds"`
	Makespan        float64          `json:"makespan_seconds"`
	BoundedSlowdown Slowdown         `json:"bounded_slowdown"`
	Quality         Quality          `json:"quality"`
	Utilization     Utilization      `json:"utilisation"`
	Fragmentation   Fragmentation    `json:"fragmentation"`
	Largest         LargestPlaceable `json:"largest_placeable"`
	Preemption      Preemption       `json:"preemption"`
	Violations      Violations       `json:"violations"`
	DecisionMS      Latency          `json:"decision_ms"`
	Throughput      Throughput       `json:"throughput"`
	// ByGPUHours has the job metrics weighted by GPU-hours, Classes those of each size class that has jobs.
	ByGPUHours Weighted `json:"by_gpu_hours"`
	Classes    []Class  `json:"size_classes"`
	// AllocationAtArrival is of runs of openb only: per cent of GPUs allocated, by per cent of GPUs asked for.
	AllocationAtArrival map[string]float64 `json:"allocation_at_arrival,omitempty"`
}

// Gangs counts the jobs.
type Gangs struct {
	Submitted int `json:"submitted"`
	// Placed is how many started at least once, Pending how many wait at the end.
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
}

// Times are of durations of jobs.
type Times struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Slowdown is of bounded slowdowns.
type Slowdown struct {
	Mean          float64 `json:"mean"`
	GeometricMean float64 `json:"geometric_mean"`
	P95           float64 `json:"p95"`
}

// Quality is how near placements come to the best that was possible when they were made.
type Quality struct {
	MeanQ   float64 `json:"mean_q"`
	P05Q    float64 `json:"p05_q"`
	MeanGap float64 `json:"mean_gap"`
	P95Gap  float64 `json:"p95_gap"`
	// Split is how many starts used several NVLink domains (or, without such, several of the innermost network domains)
	// though one would have held them; RankInversions how many boundaries rings cross for nothing.
	Split          int `json:"split_domains"`
	RankInversions int `json:"rank_inversions"`
}

// Utilization is the part of the accelerators that is in use; BusyMean is of the time in which somebody waits.
type Utilization struct {
	Mean     float64 `json:"mean"`
	BusyMean float64 `json:"busy_mean"`
	Peak     float64 `json:"peak"`
}

// Fragmentation is the part of the free accelerators that is of no use to the mix of gangs of the trace.
type Fragmentation struct {
	Mean float64 `json:"mean"`
	End  float64 `json:"end"`
}

// LargestPlaceable is how many accelerators the largest gang of whole nodes could have that has to be in one domain of the
// outermost level, as samples over time.
type LargestPlaceable struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
}

// Preemption is what was ended for others, and the accelerator-hours of work that were lost with it.
type Preemption struct {
	Gangs    int     `json:"gangs"`
	GPUHours float64 `json:"gpu_hours"`
	// Disrupted and DisruptedGPUHours are the same of what lost its nodes.
	Disrupted         int     `json:"disrupted"`
	DisruptedGPUHours float64 `json:"disrupted_gpu_hours"`
}

// Violations counts starts that broke a rule. All of them are 0 for a scheduler that keeps its promises.
type Violations struct {
	PartialGangs  int `json:"partial_gangs"`
	RequiredLevel int `json:"required_level"`
	NVLink        int `json:"nvlink"`
	DRA           int `json:"dra"`
	DoubleBooking int `json:"double_booking"`
}

// Latency is of decisions, in milliseconds of wall time.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Throughput is of wall time.
type Throughput struct {
	GangsPerSecond float64 `json:"gangs_per_s"`
	PodsPerSecond  float64 `json:"pods_per_s"`
	WallSeconds    float64 `json:"wall_s"`
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
	// Name is one of: 1 GPU, one node, 2-4 nodes, 5-16 nodes, 17-64 nodes, more than 64 nodes.
	Name     string  `json:"name"`
	Jobs     int     `json:"jobs"`
	Pending  int     `json:"pending"`
	GPUHours float64 `json:"gpu_hours"`
	Wait     Times   `json:"wait_seconds"`
	JCT      Times   `json:"jct_seconds"`
	MeanQ    float64 `json:"mean_q"`
}
