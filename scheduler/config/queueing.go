package config

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Queueing says in which order the workloads of a profile start, and how much idles for those that wait longest.
type Queueing struct {
	// Discipline is fifo, backfill or promise. fifo lets no workload pass the first one that has a reservation;
	// backfill lets those pass that do not delay it; promise is backfill in which shorter workloads pass longer ones by
	// Slack, and which reserves further ahead the longer a workload has waited. The default is promise.
	Discipline string `json:"discipline,omitempty"`
	// SlackPercent applies to promise: a workload is due after it has waited for so many hundredths of its run time, 0
	// to 1000. The default is 5.
	SlackPercent *int32 `json:"slackPercent,omitempty"`
	// IdleTime limits how long a reservation holds accelerators idle, for each that it reserves: at least a second, or
	// 0s for no limit. A reservation that has used it up is suspended, and earns a quarter of an hour for each hour of
	// suspension. The default is an hour; for promise, four hours.
	IdleTime *metav1.Duration `json:"idleTime,omitempty"`
	// GuessWeight divides IdleTime while the start of a reservation is a guess, because runs in its place have declared
	// no end: 1 to 1000. The default is 1; for promise, 16.
	GuessWeight *int32 `json:"guessWeight,omitempty"`
	// Horizon limits how far ahead of its start a workload reserves a place: at least a second, or 0s for no limit. The
	// default is a day.
	Horizon *metav1.Duration `json:"horizon,omitempty"`
	// TogetherPercent applies to gangs of known run time that ask for no topology: one that needs at most so many
	// hundredths of a domain waits for room in one, while that room is expected within Horizon. 0 to 100; 0 starts
	// gangs on any nodes. The default is 0; for promise, 50.
	TogetherPercent *int32 `json:"togetherPercent,omitempty"`
}

// The names of disciplines.
const (
	FIFO     = "fifo"
	Backfill = "backfill"
	Promise  = "promise"
)

// disciplines returns the names of all disciplines.
func disciplines() []string { return []string{FIFO, Backfill, Promise} }

// discipline returns the one of a name, which is valid.
func discipline(name string) contention.Discipline {
	switch name {
	case FIFO:
		return contention.FIFO()
	case Backfill:
		return contention.Backfill()
	}
	return contention.Promise()
}

// Discipline returns the order of the profile's workloads.
func (a GangPlacementArgs) Discipline() contention.Discipline {
	q := a.Queueing
	q.setDefaults()
	out := discipline(q.Discipline)
	out.Slack, out.Together = int64(*q.SlackPercent), int64(*q.TogetherPercent)
	out.GuessWeight = int64(*q.GuessWeight)
	out.Budget, out.Horizon = int64(q.IdleTime.Seconds()), int64(q.Horizon.Seconds())
	return out
}

func (q *Queueing) setDefaults() {
	q.Discipline = cmp.Or(q.Discipline, Promise)
	d := discipline(q.Discipline)
	q.SlackPercent = cmp.Or(q.SlackPercent, new(int32(d.Slack)))
	q.TogetherPercent = cmp.Or(q.TogetherPercent, new(int32(d.Together)))
	q.GuessWeight = cmp.Or(q.GuessWeight, new(int32(d.GuessWeight)))
	q.IdleTime = cmp.Or(q.IdleTime, seconds(d.Budget))
	q.Horizon = cmp.Or(q.Horizon, seconds(d.Horizon))
}

func (q *Queueing) validate() field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("queueing")
	if !slices.Contains(disciplines(), q.Discipline) {
		faults = append(faults, field.NotSupported(at.Child("discipline"), q.Discipline, disciplines()))
	}
	slack := *q.SlackPercent
	switch {
	case slack < 0 || slack > contention.MaxSlack:
		faults = append(faults, field.Invalid(at.Child("slackPercent"), slack, "it must be between 0 and 1000"))
	case slack > 0 && q.Discipline != Promise:
		faults = append(
			faults,
			field.Invalid(at.Child("slackPercent"), slack, "only the discipline promise has a slack"),
		)
	}
	if part := *q.TogetherPercent; part < 0 || part > 100 {
		faults = append(faults, field.Invalid(at.Child("togetherPercent"), part, "it must be between 0 and 100"))
	}
	if weight := *q.GuessWeight; weight < 1 || weight > 1000 {
		faults = append(faults, field.Invalid(at.Child("guessWeight"), weight, "it must be between 1 and 1000"))
	}
	return append(faults, append(limit(at.Child("idleTime"), q.IdleTime), limit(at.Child("horizon"), q.Horizon)...)...)
}

// limit refuses a duration that would count as no limit, although it is not zero.
func limit(at *field.Path, d *metav1.Duration) field.ErrorList {
	if d.Duration == 0 || d.Duration >= time.Second {
		return nil
	}
	return field.ErrorList{field.Invalid(at, d.Duration.String(), "it must be at least 1s, or 0s for no limit")}
}
