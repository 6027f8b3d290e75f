package direct

import (
	"reflect"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// What an option names replaces the product's number, and nothing else.
func TestOptions_Numbers(t *testing.T) {
	product := contention.DefaultPolicy()
	if got := (Options{Discipline: Promise, Preempt: true}).rules(); !reflect.DeepEqual(got, product) {
		t.Errorf("without numbers the rules are %+v, want the product's %+v", got, product)
	}
	want := product
	want.Slack, want.Budget, want.MaxLeases = 20, 7200, 2
	if got := (Options{Discipline: Promise, Preempt: true, Slack: 20, Idle: 7200, Leases: 2}).rules(); !reflect.DeepEqual(
		got,
		want,
	) {
		t.Errorf("the rules are %+v, want %+v", got, want)
	}
}
