package contention

import (
	"fmt"
	"testing"
)

// A tenant whose job is evicted, and who submits a larger one under its name, gets no protection for that.
func TestEvictions_LargerUnitIsAnother(t *testing.T) {
	e := make(evictions)
	small, large := &Unit{ID: "ns/job", Accelerators: 8}, &Unit{ID: "ns/job", Accelerators: 512}
	e.note([]*Unit{small}, 1000)
	for _, test := range []struct {
		of   *Unit
		most int
		now  int64
		want bool
	}{
		{small, 1, 1000, true},
		{small, 1, 1000 + day - 1, true},
		{small, 1, 1000 + day, false},
		{small, 2, 1000, false},
		{small, 0, 1000, false},
		{large, 1, 1000, false},
		{&Unit{ID: "ns/other", Accelerators: 8}, 1, 1000, false},
	} {
		if got := e.reached(test.most, test.of, test.now); got != test.want {
			t.Errorf(
				"%d accelerators of %s at %d, %d a day: %t",
				test.of.Accelerators,
				test.of.ID,
				test.now,
				test.most,
				got,
			)
		}
	}
}

// However many units are evicted, the state fits into a ConfigMap, and the latest evictions count.
func TestEvictions_AreBounded(t *testing.T) {
	e := make(evictions)
	for i := range int64(3 * mostEvicted) {
		e.note([]*Unit{{ID: ID(fmt.Sprint("ns/", i)), Accelerators: 1}}, 1000+i)
		if len(e) > mostEvicted {
			t.Fatalf("%d units are remembered", len(e))
		}
	}
	last := ID(fmt.Sprint("ns/", 3*mostEvicted-1))
	if !e.reached(1, &Unit{ID: last, Accelerators: 1}, 1000+3*mostEvicted) {
		t.Error("the last eviction is forgotten")
	}
}

// Of two decisions in one second about one gang, the one that is taken back leaves the other.
func TestEvictions_TakeBackLeavesOthers(t *testing.T) {
	e := make(evictions)
	part := func(id ID) *Unit { return &Unit{ID: id, Of: "ns/elastic", Accelerators: 8} }
	first := e.note([]*Unit{part("ns/elastic/1"), part("ns/elastic/2")}, 1000)
	second := e.note([]*Unit{part("ns/elastic/3")}, 1000)
	e.takeBack(second)
	if !e.reached(1, part("ns/elastic/1"), 1000) || e.reached(2, part("ns/elastic/1"), 1000) {
		t.Errorf("one eviction is left: %+v", e)
	}
	e.takeBack(first)
	if len(e) > 0 {
		t.Errorf("nothing is left: %+v", e)
	}
}
