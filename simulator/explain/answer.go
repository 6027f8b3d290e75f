package explain

import (
	"time"
)

// Answer is the output of `lockstep explain -o json`: one object. Of Gangs, Queue and Drain it has the requested one.
// Names of gangs, pods and budgets are namespace/name; instants are RFC 3339; unknown values are omitted.
type Answer struct {
	// At is the instant for which the answer is: now, or when the snapshot was taken.
	At time.Time `json:"at"`
	// Job describes the TrainJob of the question, if the answer does not depend on gangs.
	Job *Job `json:"job,omitempty"`
	// Gangs are those of the question.
	Gangs []Gang `json:"gangs,omitempty"`
	// Queue is all gangs that wait, in the queue's order, and then those that are not in it because they are
	// incomplete.
	Queue *Queue `json:"queue,omitempty"`
	Drain *Drain `json:"drain,omitempty"`
	// Notes are further facts: kinds that a snapshot lacks, assumptions of an addition.
	Notes []string `json:"notes,omitempty"`
}

// Job is a TrainJob.
type Job struct {
	Name string `json:"name"`
	// State is running, suspended, finished, refused (it cannot be rendered), ungrouped (its pods start one by one) or
	// pending (the controller has not made its gang yet).
	State string `json:"state"`
	// Answer is one sentence.
	Answer string `json:"answer"`
	// Starts is set if nothing of the job waits.
	Starts bool `json:"starts"`
}

// Gang is the answer about a gang.
type Gang struct {
	Name string `json:"name"`
	// State is placed, fits, preempts, moves, waits, incomplete, wrong or foreign.
	State string `json:"state"`
	// Answer is one sentence.
	Answer string `json:"answer"`
	// Starts is set if the gang runs, or if the scheduler starts it in its next cycle.
	Starts bool `json:"starts"`
	// Position is its place in the queue, 1 for the first; not there if it is not in it.
	Position int       `json:"position,omitempty"`
	Priority int32     `json:"priority"`
	QueuedAt time.Time `json:"queued_at"`
	// Members exist or are announced, Needed have to start together, Running have nodes.
	Members int `json:"members"`
	Needed  int `json:"needed"`
	Running int `json:"running"`
	// Accelerators is the number of devices that they request.
	Accelerators int64 `json:"accelerators"`
	// Mark is the mark by which its pods name it; not there if they name their PodGroup themselves, and nothing else.
	Mark *Mark `json:"mark,omitempty"`
	// Where it is placed, now or later.
	Where *Where `json:"where,omitempty"`
	// Problem is the fault of its request.
	Problem   string     `json:"problem,omitempty"`
	Missing   *Missing   `json:"missing,omitempty"`
	Shortfall *Shortfall `json:"shortfall,omitempty"`
	// Reserved is its own reservation. Behind lists the reservations of other gangs that alone prevent its start.
	Reserved *Reserved `json:"reserved,omitempty"`
	Behind   *Behind   `json:"behind,omitempty"`
	// Services are the services that hold accelerators, most first, if no end makes room for it.
	Services []Waited `json:"services,omitempty"`
	// Sweep is set if it waits for the turn of its sweep.
	Sweep *Sweep `json:"sweep,omitempty"`
	// After are the gangs whose reservations have to end before a place can be reserved for it.
	After []string `json:"after,omitempty"`
	// Passes are the gangs whose reserved places it uses without delaying them.
	Passes []string `json:"passes,omitempty"`
	// Preemption lists its victims; else NoVictims is the reason why it evicts nothing.
	Preemption *Preemption `json:"preemption,omitempty"`
	NoVictims  string      `json:"no_victims,omitempty"`
	// Start is its expected start; not there if it runs.
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
	// Late members arrive when the others run, and their place is reserved; planned ones have no node yet.
	Late    bool `json:"late,omitempty"`
	Planned bool `json:"planned,omitempty"`
	path    string
}

// Missing is the reason for which a gang is incomplete.
type Missing struct {
	Exist int `json:"exist"`
	// Indexes are the completion indexes without a pod, where completion indexes identify pods.
	Indexes []int `json:"indexes,omitempty"`
	// Gates are scheduling gates and the number of pods that each holds back.
	Gates   map[string]int `json:"gates,omitempty"`
	Leaving int            `json:"leaving,omitempty"`
}

// Shortfall is the fleet's deficit.
type Shortfall struct {
	// Text is the scheduler's own sentence.
	Text string `json:"text"`
	// Level is the required one; "" if the whole fleet is too small.
	Level   string `json:"level,omitempty"`
	Members int    `json:"members"`
	// Nearest are the domains that hold most of them, best first.
	Nearest []Near `json:"nearest,omitempty"`
	// Barred is the number of nodes from which each rule bars a member, Full the number without room for one, Open the
	// number with room, Outside the number without a label of the level.
	Barred  map[string]int `json:"barred,omitempty"`
	Full    int            `json:"full"`
	Open    int            `json:"open"`
	Outside int            `json:"outside"`
	// Never is set if the gang would not fit an empty fleet either.
	Never bool `json:"never"`
}

// Near is a domain that nearly fits.
type Near struct {
	Domain string `json:"domain"`
	Holds  int    `json:"holds"`
	Lacks  int    `json:"lacks"`
}

// Reserved is a place that is reserved for a gang.
type Reserved struct {
	For string `json:"for"`
	// Reason is head, preemption, start, late-member or move.
	Reason string `json:"reason"`
	// At is the time at which it is free, as far as that is known; Estimated says that an end is assumed.
	At        *time.Time `json:"at,omitempty"`
	Estimated bool       `json:"estimated,omitempty"`
	// Open is set if others may use the place: too many accelerators would idle until it is free.
	Open  bool  `json:"open,omitempty"`
	Where Where `json:"where"`
	// WaitsFor are the units whose ends make the room, the last first.
	WaitsFor []Waited `json:"waits_for"`
}

// Waited is a unit whose end a gang waits for.
type Waited struct {
	Name string `json:"name"`
	// Pod is set for a pod in no gang.
	Pod bool `json:"pod,omitempty"`
	// End is the time of its end. Estimated says that this is not known: it is assumed to run as long again as it has,
	// at least ten minutes. Overdue says that it is known, and has passed.
	End          *time.Time `json:"end,omitempty"`
	Estimated    bool       `json:"estimated,omitempty"`
	Overdue      bool       `json:"overdue,omitempty"`
	Accelerators int64      `json:"accelerators"`
}

// Sweep describes the sweep of a trial that waits for its turn: as many run, or have their turn before it, as may run
// at a time.
type Sweep struct {
	// Name is namespace/name.
	Name string `json:"name"`
	// Running counts its trials that run, Before those that wait and have their turn before the gang; Limit bounds
	// those that run at a time.
	Running int `json:"running"`
	Before  int `json:"before"`
	Limit   int `json:"limit"`
}

// Behind explains the wait of a gang that fits but for places that are reserved for others.
type Behind struct {
	// Reserved are these places, in the order of the queue.
	Reserved []Reserved `json:"reserved"`
	// At is the first instant at which one of them is needed, End when the gang would end.
	At  *time.Time `json:"at,omitempty"`
	End *time.Time `json:"end,omitempty"`
}

// Preemption is the cost of its start for others.
type Preemption struct {
	Victims []Victim `json:"victims"`
	// LostHours are accelerator-hours of work.
	LostHours float64 `json:"lost_accelerator_hours"`
	// Cheapest is set if no victims lose less.
	Cheapest bool `json:"cheapest"`
	// Exceeded are PodDisruptionBudgets that allow less.
	Exceeded []string `json:"exceeded_budgets,omitempty"`
}

// Victim is a unit that is evicted.
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

// Start is the expected start of a gang, if running workloads end as expected.
type Start struct {
	At *time.Time `json:"at,omitempty"`
	// Text is the start in words, or the reason why it is unknown.
	Text string `json:"text"`
	// Usually is the scheduler's forecast from earlier waits, if it learns run times and the last of the instants is in
	// the future.
	Usually *Usually `json:"usually,omitempty"`
}

// Usually holds the ends of waits such as a gang's: eight in ten between From and Until, half of them by Half.
type Usually struct {
	From  time.Time `json:"from"`
	Half  time.Time `json:"half"`
	Until time.Time `json:"until"`
}

// Queue lists the waiting workloads.
type Queue struct {
	Gangs []Gang `json:"gangs"`
}

// Drain is the effect of the drain of nodes.
type Drain struct {
	Answer string   `json:"answer"`
	Nodes  []string `json:"nodes"`
	// Settled is set if all displaced units have a place elsewhere, as far as our scheduler decides.
	Settled bool   `json:"settled"`
	Moves   []Move `json:"displaced"`
	// Stay is the number of pods that stay: those of DaemonSets, and static ones.
	Stay      int      `json:"stay"`
	LostHours float64  `json:"lost_accelerator_hours"`
	Exceeded  []string `json:"exceeded_budgets,omitempty"`
}

// Move is the outcome of a gang or a pod that is displaced.
type Move struct {
	Name string `json:"name"`
	Pod  bool   `json:"pod,omitempty"`
	// Ends are its pods that end, Drained those of them on the drained nodes.
	Ends         []string `json:"ends"`
	Drained      []string `json:"drained"`
	Accelerators int64    `json:"accelerators"`
	LostHours    float64  `json:"lost_accelerator_hours"`
	// Forever is set if no controller creates the pod again.
	Forever bool `json:"forever,omitempty"`
	// Then is the answer about it on the fleet without these nodes.
	Then Gang `json:"then"`
}
