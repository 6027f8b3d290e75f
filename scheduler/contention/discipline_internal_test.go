package contention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A lease is looked at again when its instant gets within the horizon: not a second later than a dumb twin finds, and
// no earlier.
func TestDiscipline_NearsWhenItsHorizonReachesTheInstant(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		d := Discipline{Horizon: 1 + r.Int64N(50), WaitPart: r.Int64N(6)}
		l := &Lease{Instant: 1 + r.Int64N(400), discipline: d, Order: Order{Since: time.Unix(r.Int64N(100), 0)}}
		want := int64(-1000)
		for l.beyond(want) {
			want++
		}
		if got := max(l.nears(), -1000); got != want {
			t.Fatalf("%+v since %d, instant %d: nears at %d, want %d", d, l.Order.Since.Unix(), l.Instant, got, want)
		}
	}
}

// The order is total and does not change while an entity waits: a run time that gets shorter, or is predicted anew,
// moves no entity.
func TestDiscipline_DueOnce(t *testing.T) {
	m := New(DefaultPolicy())
	e := Entity{ID: "ns/a", Order: Order{Since: time.Unix(1000, 0)}, RunTime: 7200}
	m.Add(e)
	want, _ := m.OrderOf(e.ID)
	if got := want.Due.Unix(); got != 1000+360 {
		t.Fatalf("due at %d, want a twentieth of two hours after 1000", got)
	}
	e.RunTime = 60
	m.Add(e)
	if got, _ := m.OrderOf(e.ID); got != want {
		t.Errorf("the order changed from %v to %v", want, got)
	}
	e.Order.Since = time.Unix(2000, 0)
	m.Add(e)
	if got, _ := m.OrderOf(e.ID); got.Due.Unix() != 2003 {
		t.Errorf("ready anew at 2000, due at %d, want 2003", got.Due.Unix())
	}
	for _, run := range []int64{longestRun, longestRun + 1, math.MaxInt64 / 100, math.MaxInt64} {
		long := Entity{ID: ID(fmt.Sprint("ns/", run)), Order: Order{Since: time.Unix(1000, 0)}, RunTime: run}
		m.Add(long)
		if got, _ := m.OrderOf(long.ID); got.Due.Unix() != 1000+longestRun/20 {
			t.Errorf("a tenant who declares a run of %d s is due at %d", run, got.Due.Unix())
		}
	}
	none := Entity{ID: "ns/b", Order: Order{Since: time.Unix(1000, 0)}}
	m.Add(none)
	if got, _ := m.OrderOf(none.ID); got.Due.Unix() != 1000+day/20 {
		t.Errorf("without a run time due at %d, want as if it ran a day", got.Due.Unix())
	}
}
