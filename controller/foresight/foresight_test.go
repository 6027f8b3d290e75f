package foresight_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/controller/foresight"
)

func start() time.Time { return time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC) }

// trainer returns the reported remaining time, so long after the first report.
type trainer func(passed time.Duration) (left time.Duration)

// watch follows a trainer that reports every half minute, for a time.
func watch(says trainer, passed time.Duration) foresight.Track {
	at := func(d time.Duration) foresight.Report {
		return foresight.Report{At: start().Add(d), End: start().Add(d + says(d))}
	}
	track := foresight.Begin(at(0))
	for d := 30 * time.Second; d <= passed; d += 30 * time.Second {
		track = track.Then(at(d))
	}
	return track
}

// ends counts down from a time, as fast as time passes times pace.
func ends(in time.Duration, pace float64) trainer {
	return func(passed time.Duration) time.Duration { return in - time.Duration(float64(passed)*pace) }
}

// A trainer's reports are believed until they prove wrong.
func TestTrack_WeighsWhatTrainersSay(t *testing.T) {
	t.Parallel()
	soon := func(time.Duration) time.Duration { return 5 * time.Second }
	for name, c := range map[string]struct {
		says   trainer
		passed time.Duration
		// least and most bound the end of the job, from its last report on.
		least, most time.Duration
	}{
		"the first report is believed":                {ends(time.Hour, 1), 0, time.Hour, time.Hour},
		"an honest trainer is":                        {ends(10*time.Hour, 1), 9 * time.Hour, 59 * time.Minute, 61 * time.Minute},
		"one that takes twice as long, soon known":    {ends(10*time.Hour, 0.5), time.Hour, 18 * time.Hour, 19*time.Hour + time.Minute},
		"one that takes half as long":                 {ends(10*time.Hour, 2), time.Hour, 4 * time.Hour, 4*time.Hour + 5*time.Minute},
		"five seconds, said once more":                {soon, 30 * time.Second, 5 * time.Second, 6 * time.Second},
		"five seconds for an hour":                    {soon, time.Hour, 5 * time.Minute, 6 * time.Minute},
		"five seconds for four hours":                 {soon, 4 * time.Hour, 5 * time.Hour, 6 * time.Hour},
		"five seconds after hours of honesty":         {func(d time.Duration) time.Duration { return max(3*time.Hour-d, 5*time.Second) }, 4 * time.Hour, 5 * time.Minute, 6 * time.Minute},
		"a wrong start is forgiven":                   {func(d time.Duration) time.Duration { return max(0, min(time.Hour, d*12-d)) + 10*time.Hour - d }, 3 * time.Hour, 7 * time.Hour, 8*time.Hour + time.Minute},
		"a moment that takes an hour to come":         {ends(time.Second, 0), time.Hour, time.Minute, 70 * time.Second},
		"the end of time is a century away":           {ends(290*365*24*time.Hour, 0), time.Hour, 99 * 365 * 24 * time.Hour, 101 * 365 * 24 * time.Hour},
		"an end that has passed says that it is over": {ends(-time.Minute, 1), time.Minute, -3 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := watch(c.says, c.passed).End(1).Sub(start().Add(c.passed))
			if left < c.least || left > c.most {
				t.Errorf("%v are left, want %v to %v", left, c.least, c.most)
			}
		})
	}
}

// A report that arrives twice, or late, changes nothing.
func TestTrack_OldReports(t *testing.T) {
	t.Parallel()
	track := watch(ends(time.Hour, 0.5), 20*time.Minute)
	old := foresight.Report{At: start(), End: start().Add(9 * time.Hour)}
	if got := track.Then(old); got != track {
		t.Errorf("after an old report %+v, want %+v", got, track)
	}
}

// jobs that first reported an hour, and took so many minutes.
func jobs(minutes ...int) foresight.Record {
	var record foresight.Record
	for i, took := range minutes {
		record = record.With(outcome(i, time.Hour, time.Duration(took)*time.Minute))
	}
	return record
}

func outcome(number int, promised, took time.Duration) foresight.Outcome {
	began := start().Add(time.Duration(number) * 24 * time.Hour)
	return foresight.Outcome{
		UID:      types.UID(strconv.Itoa(number)),
		Promised: foresight.Report{At: began, End: began.Add(promised)}, Ended: began.Add(took),
	}
}

func many(minutes, count int) []int {
	var out []int
	for range count {
		out = append(out, minutes)
	}
	return out
}

// A record is the median of the jobs that completed last.
func TestRecord_Factor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record foresight.Record
		want   float64
	}{
		"nothing is known":                     {jobs(), 1},
		"two jobs are no record":               {jobs(240, 240), 1},
		"three are":                            {jobs(60, 120, 240), 2},
		"one that was far off counts as one":   {jobs(60, 60, 60, 6000), 1},
		"jobs that end early count, too":       {jobs(30, 30, 30), 0.5},
		"it has bounds":                        {jobs(6000, 6000, 6000), 8},
		"both ways":                            {jobs(0, 0, 0), 0.125},
		"sixteen are remembered":               {jobs(append(many(240, 20), many(60, 16)...)...), 1},
		"of short promises nothing is learned": {jobs(120, 120, 120).With(outcome(3, 50*time.Second, time.Hour)).With(outcome(4, 0, time.Hour)), 2},
	} {
		if got := c.record.Factor(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A record counts before a job has a track of its own, and less and less from then on.
func TestTrack_BeginsWithTheRecord(t *testing.T) {
	t.Parallel()
	twice := jobs(120, 120, 120).Factor()
	for _, c := range []struct {
		passed, want time.Duration
	}{{0, 20 * time.Hour}, {10 * time.Minute, 13 * time.Hour}, {2 * time.Hour, 8 * time.Hour}} {
		left := watch(ends(10*time.Hour, 1), c.passed).End(twice).Sub(start().Add(c.passed))
		if off := (left - c.want).Abs(); off > 10*time.Minute {
			t.Errorf("after %v of honest reports %v are left, want about %v", c.passed, left, c.want)
		}
	}
}

// The record does not depend on the order or the repetition of outcomes.
func TestRecord_OrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		chance := rand.New(rand.NewPCG(seed, 1))
		var outcomes []foresight.Outcome
		for i := range 30 {
			outcomes = append(outcomes, outcome(i/2*2, time.Hour, time.Duration(chance.IntN(300))*time.Minute))
			outcomes[i].UID = types.UID(strconv.Itoa(i))
		}
		var want, got foresight.Record
		for _, o := range outcomes {
			want = want.With(o)
		}
		for range 3 {
			for _, i := range chance.Perm(len(outcomes)) {
				got = got.With(outcomes[i])
			}
		}
		if want.Factor() != got.Factor() {
			t.Fatalf("seed %d: %v, want %v", seed, got.Factor(), want.Factor())
		}
	}
}
