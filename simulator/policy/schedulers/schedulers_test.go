package schedulers_test

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
)

// Every named scheduler can be opened, and has a description.
func TestOpen_EveryNamedScheduler(t *testing.T) {
	for _, name := range schedulers.Names() {
		s, err := schedulers.Open(schedulers.Ask{Name: name, Nodes: 32, Seed: 1}, clock.RealClock{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Name != name || s.Engine == nil || s.Source == "" || s.TieRule == "" || s.Discipline == "" {
			t.Errorf("%s is %+v", name, s)
		}
		if want := map[bool]string{true: schedulers.Kube, false: schedulers.Direct}[name == schedulers.NativeTAS]; s.On != want {
			t.Errorf("%s is played by %s, want %s", name, s.On, want)
		}
	}
}

func TestOpen_UnknownSchedulerIsBadInput(t *testing.T) {
	for want, ask := range map[string]schedulers.Ask{
		"no scheduler":   {Name: "lockstop"},
		"no such engine": {Name: schedulers.Lockstep, Engine: "steam"},
		"no plugin":      {Name: schedulers.Optimum, Engine: schedulers.Kube},
		"itself":         {Name: schedulers.NativeTAS, Engine: schedulers.Direct, Nodes: 1},
		"577 nodes":      {Name: schedulers.NativeTAS, Nodes: schedulers.MostNative + 1},
		"slack=0":        {Name: "lockstep:slack=0"},
		"idle=1001":      {Name: "lockstep:idle=1001"},
		"leases=some":    {Name: "lockstep:leases=some"},
		"leases=08":      {Name: "lockstep:leases=08"},
		"pace=2":         {Name: "lockstep:pace=2"},
		"kueue-bestfit:": {Name: "kueue-bestfit:slack=20"},
		"leases=N":       {Name: "lockstep:leases"},
	} {
		_, err := schedulers.Open(ask, clock.RealClock{})
		if !badinput.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want bad input with %q", ask, err, want)
		}
	}
}

// A number is said where results say who decided.
func TestOpen_NumbersAreSaid(t *testing.T) {
	for name, want := range map[string]string{
		"lockstep:slack=20": "due by 20 % of the run time", "lockstep:idle=16": "idle for 16 hours", "lockstep:leases=2": "with 2 reservations",
	} {
		s, err := schedulers.Open(schedulers.Ask{Name: name, Nodes: 32}, clock.RealClock{})
		if err != nil || s.Name != name || !strings.Contains(s.Source, want) {
			t.Errorf("%s is %+v, %v", name, s, err)
		}
	}
}
