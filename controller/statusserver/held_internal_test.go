package statusserver

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// virtual is a cluster of jobs in virtual time: due reports are written at once, at so many writes a second.
type virtual struct {
	clock   *clocktesting.FakePassiveClock
	held    *held
	jobs    []*trainerv1alpha1.TrainJob
	version int
	written []time.Time // when the report that stands was sent, by job
}

func newVirtual(jobs int) *virtual {
	v := &virtual{clock: clocktesting.NewFakePassiveClock(ten()), version: 1, written: make([]time.Time, jobs)}
	v.held = newHeld(v.clock, "replica")
	for i := range jobs {
		name := fmt.Sprintf("job-%d", i)
		v.jobs = append(v.jobs, &trainerv1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: name, UID: types.UID(strconv.Itoa(i)), ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(ten().Add(-time.Hour)),
		}})
	}
	return v
}

// report is a steady training's.
func (v *virtual) report(i int) report {
	now := v.clock.Now()
	status := said(func(s *trainerv1alpha1.TrainerStatus) {
		s.LastUpdatedTime = metav1.NewTime(now)
		*s.EstimatedRemainingSeconds = int32(ten().Add(2 * time.Hour).Sub(now).Seconds())
	})
	return report{status: status, by: member{uid: v.jobs[i].UID, created: ten().Add(-time.Hour)}, at: now}
}

// write writes at most so many due reports, and returns their number.
func (v *virtual) write(most int) int { return v.writeUntil(time.Time{}, most) }

// writeUntil writes the reports that are due until the horizon, or until now if that is later.
func (v *virtual) writeUntil(until time.Time, most int) int {
	for count := range most {
		horizon := later(v.clock.Now(), until)
		next, ok := v.held.take(horizon)
		if !ok {
			return count
		}
		i, _ := strconv.Atoi(string(next.uid))
		v.clock.SetTime(v.clock.Now().Add(time.Microsecond)) // as clocks do
		w, ok := v.held.confirm(v.jobs[i], horizon)
		if !ok {
			continue
		}
		v.version++
		v.jobs[i].Status.TrainerStatus, v.jobs[i].ResourceVersion = w.status, strconv.Itoa(v.version)
		v.written[i] = w.at
		v.held.written(next.uid, v.jobs[i].ResourceVersion)
	}
	return most
}

// A replica that starts meets 10,000 jobs that report every five seconds. With 450 writes a second, the standing report
// is never older than half a minute and the time between two reports, and no second has more than its share of writes.
func TestHeld_TenThousandJobsAfterARestart(t *testing.T) {
	const jobs, every, perSecond, step = 10_000, 5, 450, 100 * time.Millisecond
	v := newVirtual(jobs)
	for i := range jobs {
		v.jobs[i].Status.TrainerStatus = v.report(i).status
		v.written[i] = v.clock.Now()
	}
	second, most, total, oldest := 0, 0, 0, time.Duration(0)
	for tick := range 10 * 120 {
		for i := tick % (10 * every); i < jobs; i += 10 * every {
			v.held.admit(v.jobs[i])
			v.held.offer(v.jobs[i], v.report(i))
		}
		written := v.write(perSecond / 10)
		total, second = total+written, second+written
		if tick%10 == 9 {
			most, second = max(most, second), 0
			for i := range jobs {
				oldest = max(oldest, v.clock.Since(v.written[i]))
			}
		}
		v.clock.SetTime(v.clock.Now().Add(step))
	}
	if oldest > Period+every*time.Second+time.Second {
		t.Errorf("a report is %v old", oldest)
	}
	if most >= perSecond || total > 120*jobs*11/300 {
		t.Errorf("%d writes in one second and %d in two minutes", most, total)
	}
}

// A replica to which a job did not report for minutes sees another replica's write late. It must not take the report in
// the TrainJob for one of minutes ago with a clock that is ahead, and write an older one over it.
func TestHeld_SeesAnotherReplicasWriteLate(t *testing.T) {
	v := newVirtual(1)
	v.held.admit(v.jobs[0])
	v.held.offer(v.jobs[0], v.report(0))
	v.write(1)

	v.clock.SetTime(ten().Add(4 * time.Minute))
	newest := v.report(0)
	v.version++
	v.jobs[0].Status.TrainerStatus, v.jobs[0].ResourceVersion = newest.status, strconv.Itoa(v.version)
	v.clock.SetTime(ten().Add(4*time.Minute + 5*time.Second))
	late := v.report(0)
	late.status.LastUpdatedTime = metav1.NewTime(newest.at.Add(-2 * time.Second))
	v.held.admit(v.jobs[0])
	if became := v.held.offer(v.jobs[0], late); became != outcomeOlder {
		t.Errorf("a report of two seconds before the one that stands is %s, want %s", became, outcomeOlder)
	}
	if written := v.write(1); written != 0 {
		t.Errorf("%v stands after %v", v.jobs[0].Status.TrainerStatus.LastUpdatedTime, newest.status.LastUpdatedTime)
	}

	// The next one is newer.
	v.clock.SetTime(ten().Add(4*time.Minute + 10*time.Second))
	v.held.admit(v.jobs[0])
	if became := v.held.offer(v.jobs[0], v.report(0)); became != outcomeHeld {
		t.Errorf("a newer report is %s, want %s", became, outcomeHeld)
	}
}

// Another replica wrote 27 s after this one last looked. The next report waits for half a minute from then, not from
// that look, and no longer where the trainer's clock is ahead.
func TestHeld_CountsFromAnotherReplicasWrite(t *testing.T) {
	const sent, arrives = 27 * time.Second, 32 * time.Second
	for name, test := range map[string]struct {
		ahead, due time.Duration // how far the trainer's clock is ahead, and by when the next report has to be written
	}{
		"a clock that is right":         {due: sent + Period},
		"a clock that is an hour ahead": {ahead: time.Hour, due: arrives + Period},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVirtual(1)
			offer := func() {
				r := v.report(0)
				r.status.LastUpdatedTime = metav1.NewTime(r.at.Add(test.ahead))
				v.held.admit(v.jobs[0])
				v.held.offer(v.jobs[0], r)
			}
			offer()
			v.write(1)
			v.clock.SetTime(ten().Add(sent))
			v.version++
			v.jobs[0].ResourceVersion, v.jobs[0].Status.TrainerStatus = strconv.Itoa(v.version), v.report(0).status
			v.jobs[0].Status.TrainerStatus.LastUpdatedTime = metav1.NewTime(ten().Add(sent + test.ahead))
			v.clock.SetTime(ten().Add(arrives))
			offer()
			if written := v.write(1); written != 0 {
				t.Error("the replica writes seconds after another one")
			}
			v.clock.SetTime(ten().Add(test.due - spread - time.Second))
			if written := v.write(1); written != 0 {
				t.Error("the replica writes early")
			}
			v.clock.SetTime(ten().Add(test.due))
			if written := v.write(1); written != 1 {
				t.Errorf("nothing is written after %v", test.due)
			}
		})
	}
}

// A replica that stops holds reports of 100 jobs and has time for ten writes. The jobs that have not reported for 20 s
// are written: the others report to another replica within five seconds.
func TestHeld_HurryWritesFirstWhatIsNotSaidAgain(t *testing.T) {
	const jobs, silent, second = 100, 10, time.Second
	v := newVirtual(jobs)
	offer := func(from, to int) {
		for i := from; i < to; i++ {
			v.held.admit(v.jobs[i])
			v.held.offer(v.jobs[i], v.report(i))
		}
	}
	offer(silent, jobs)
	v.write(jobs - silent)
	v.clock.SetTime(ten().Add(5 * second))
	offer(0, silent)
	v.write(silent) // those that fall silent were written last, so that they are due last
	v.clock.SetTime(ten().Add(6 * second))
	offer(0, silent)
	last := v.clock.Now()
	for range 4 {
		v.clock.SetTime(v.clock.Now().Add(5 * second))
		offer(silent, jobs)
	}

	v.held.hurry()
	v.writeUntil(v.clock.Now().Add(Period), silent)
	for i := range silent {
		if !v.written[i].Equal(last) {
			t.Errorf("job %d shows its report of %v, want the one of %v", i, v.written[i], last)
		}
	}
}

// More than can be written is written in turn: no job starves, and only the newest of each waits.
func TestHeld_MoreThanCanBeWritten(t *testing.T) {
	const jobs, perSecond = 250, 5
	v := newVirtual(jobs)
	counts := make([]int, jobs)
	for second := range 200 {
		for i := range jobs {
			r := v.report(i)
			*r.status.EstimatedRemainingSeconds = int32(10_000 + 10_000*(second%2)) // changes a decision each time
			v.held.admit(v.jobs[i])
			v.held.offer(v.jobs[i], r)
		}
		for range perSecond {
			before := v.version
			v.write(1)
			for i := range jobs {
				if v.version != before && v.jobs[i].ResourceVersion == strconv.Itoa(v.version) {
					counts[i]++
					if age := v.clock.Since(v.written[i]); age > 500*time.Millisecond {
						t.Fatalf("second %d: a report %v old was written, not the newest", second, age)
					}
				}
			}
		}
		v.clock.SetTime(v.clock.Now().Add(time.Second))
	}
	for i, count := range counts {
		if count < 3 || count > 5 {
			t.Fatalf("job %d was written %d times, want its share of 4", i, count)
		}
	}
	if _, waiting := v.held.count(); waiting > jobs {
		t.Errorf("%d reports wait", waiting)
	}
}
