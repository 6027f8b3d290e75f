package explain

import (
	"time"
)

// Answer is what `lockstep explain -o json` prints: one object. Of Gangs, Queue and Drain there is the one that was asked for. Names
// of gangs, pods and budgets are namespace/name; instants are RFC 3339; what nobody knows is not there.
type Answer struct {
	// At is the instant for which the answer is: now, or when the snapshot was taken.
	At time.Time `json:"at"`
	// Job says what becomes of the TrainJob that was asked about, if that is not the matter of its gangs.
	Job *Job `json:"job,omitempty"`
	// Gangs are those that were asked about.
	Gangs []Gang `json:"gangs,omitempty"`
	// Queue is everybody who waits, in the queue's order, and then who is not in it because it is incomplete.
	Queue *Queue `json:"queue,omitempty"`
	Drain *Drain `json:"drain,omitempty"`
	// Notes are what else is to be known: what a snapshot does not hold, what an addition assumes.
	Notes []string `json:"notes,omitempty"`
}

// Job is a TrainJob.
type Job struct {
	Name string `json:"name"`
	// State is running, suspended, finished, refused (it cannot be rendered), ungrouped (its pods start one by one) or pending
	// (the controller has not made its gang yet).
	State string `json:"state"`
	// Answer is one sentence.
	Answer string `json:"answer"`
	// Starts says that nothing of the job waits.
	Starts bool `json:"starts"`
}

// Gang is the answer about a gang.
type Gang struct {
	Name string `json:"name"`
	// State is placed, fits, preempts, moves, waits, incomplete, wrong or foreign.
	State string `json:"state"`
	// Answer is one sentence.
	Answer string `json:"answer"`
	// Starts says that the gang runs, or that the scheduler starts it with its next look.
	Starts bool `json:"starts"`
	// Position is its place in the queue, 1 for the first; not there if it is not in it.
	Position int       `json:"position,omitempty"`
	Priority int32     `json:"priority"`
	QueuedAt time.Time `json:"queued_at"`
	// Members exist or are announced, Needed have to start together, Running have nodes.
	Members int `json:"members"`
	Needed  int `json:"needed"`
	Running int `json:"running"`
	// Accelerators is how many devices they ask for.
	Accelerators int64 `json:"accelerators"`
	// Where it is, or goes.
	Where *Where `json:"where,omitempty"`
	// Problem is what is wrong with what it asks for.
	Problem   string     `json:"problem,omitempty"`
	Missing   *Missing   `json:"missing,omitempty"`
	Shortfall *Shortfall `json:"shortfall,omitempty"`
	// Kept is the place that is kept, for the gang itself or for the one it is behind.
	Kept   *Kept   `json:"kept,omitempty"`
	Behind *Behind `json:"behind,omitempty"`
	// Preemption is whom it ends; else Spared says why nobody.
	Preemption *Preemption `json:"preemption,omitempty"`
	Spared     string      `json:"spared,omitempty"`
	// Start is when it is expected to start; not there if it runs.
	Start *Start `json:"expected_start,omitempty"`
}

// Where is a placement.
type Where struct {
	// Within is the smallest domain that holds all of it, as LEVEL=PATH; "" if only the fleet does.
	Within string `json:"within"`
	Nodes  int    `json:"nodes"`
	Ranks  []Rank `json:"ranks"`
}

// Rank is the place of one member.
type Rank struct {
	Rank int    `json:"rank"`
	Pod  string `json:"pod"`
	Node string `json:"node"`
	// Domains are the node's, by level.
	Domains map[string]string `json:"domains"`
	// Late members come when the others run, and their place is held; planned ones have no node yet.
	Late    bool `json:"late,omitempty"`
	Planned bool `json:"planned,omitempty"`
	path    string
}

// Missing is why a gang is incomplete.
type Missing struct {
	Exist int `json:"exist"`
	// Indexes are the completion indexes that no pod has, where pods are told apart by these.
	Indexes []int `json:"indexes,omitempty"`
	// Gates are scheduling gates and how many pods each holds back.
	Gates   map[string]int `json:"gates,omitempty"`
	Leaving int            `json:"leaving,omitempty"`
}

// Shortfall is what the fleet lacks.
type Shortfall struct {
	// Text is the scheduler's own sentence.
	Text string `json:"text"`
	// Level is the required one; "" if the whole fleet is too small.
	Level   string `json:"level,omitempty"`
	Members int    `json:"members"`
	// Nearest are the domains that hold most of them, best first.
	Nearest []Near `json:"nearest,omitempty"`
	// Barred is on how many nodes which rule forbids a member, Full how many have no room for one, Open how many have, Outside how
	// many have no label of the level.
	Barred  map[string]int `json:"barred,omitempty"`
	Full    int            `json:"full"`
	Open    int            `json:"open"`
	Outside int            `json:"outside"`
	// Never says that it would not fit an empty fleet either.
	Never bool `json:"never"`
}

// Near is a domain that comes close.
type Near struct {
	Domain string `json:"domain"`
	Holds  int    `json:"holds"`
	Lacks  int    `json:"lacks"`
}

// Kept is the place that is kept for the first of the queue.
type Kept struct {
	For string `json:"for"`
	// At is when it is free, as far as anybody knows.
	At    *time.Time `json:"at,omitempty"`
	Where Where      `json:"where"`
	// WaitsFor are those whose ends make the room, the last first.
	WaitsFor []Waited `json:"waits_for"`
}

// Waited is whom a gang waits for.
type Waited struct {
	Name string `json:"name"`
	// Pod says that it is a pod in no gang.
	Pod          bool       `json:"pod,omitempty"`
	End          *time.Time `json:"end,omitempty"`
	Accelerators int64      `json:"accelerators"`
}

// Behind is why a gang waits for which there is room.
type Behind struct {
	// Head is the first of the queue, Where the place that the gang would have without it, Shared the nodes of that which are kept.
	Head   string   `json:"head"`
	Where  Where    `json:"where"`
	Shared []string `json:"shared"`
	// End is when the gang would end.
	End *time.Time `json:"end,omitempty"`
}

// Preemption is what its start costs others.
type Preemption struct {
	Victims []Victim `json:"victims"`
	// LostHours are accelerator-hours of work.
	LostHours float64 `json:"lost_accelerator_hours"`
	// Cheapest says that no victims lose less.
	Cheapest bool `json:"cheapest"`
	// Exceeded are PodDisruptionBudgets that allow less.
	Exceeded []string `json:"exceeded_budgets,omitempty"`
}

// Victim is who is ended.
type Victim struct {
	Name         string  `json:"name"`
	Pod          bool    `json:"pod,omitempty"`
	Priority     int32   `json:"priority"`
	Pods         int     `json:"pods"`
	Accelerators int64   `json:"accelerators"`
	LostHours    float64 `json:"lost_accelerator_hours"`
	// Leaving victims are on their way out already.
	Leaving bool `json:"leaving,omitempty"`
}

// Start is when a gang is expected to start, if what runs ends when it is expected to.
type Start struct {
	At *time.Time `json:"at,omitempty"`
	// Text says it in words, and why nobody knows if nobody does.
	Text string `json:"text"`
}

// Queue is who waits.
type Queue struct {
	Gangs []Gang `json:"gangs"`
}

// Drain is what the drain of nodes does.
type Drain struct {
	Answer string   `json:"answer"`
	Nodes  []string `json:"nodes"`
	// Settled says that everybody who is displaced has a place elsewhere, as far as our scheduler decides.
	Settled bool   `json:"settled"`
	Moves   []Move `json:"displaced"`
	// Stay is the number of pods that stay: those of DaemonSets, and static ones.
	Stay      int      `json:"stay"`
	LostHours float64  `json:"lost_accelerator_hours"`
	Exceeded  []string `json:"exceeded_budgets,omitempty"`
}

// Move is what becomes of a gang or a pod that is displaced.
type Move struct {
	Name string `json:"name"`
	Pod  bool   `json:"pod,omitempty"`
	// Ends are its pods that end, Drained those of them on the drained nodes.
	Ends         []string `json:"ends"`
	Drained      []string `json:"drained"`
	Accelerators int64    `json:"accelerators"`
	LostHours    float64  `json:"lost_accelerator_hours"`
	// Forever says that nobody makes the pod again.
	Forever bool `json:"forever,omitempty"`
	// Then is the answer about it on the fleet without these nodes.
	Then Gang `json:"then"`
}
