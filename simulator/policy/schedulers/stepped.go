package schedulers

import (
	"fmt"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// stepped is a profile of the real kube-scheduler.
func stepped(ask Ask, wall clock.PassiveClock) (Scheduler, error) {
	s := Scheduler{
		Name: ask.Name, On: Kube, Source: "the shipped profile in kube-scheduler 1.37.2",
		Discipline: direct.Promise.String(), TieRule: tieRule,
	}
	profile := kube.Lockstep
	if ask.Name == NativeTAS {
		switch {
		case ask.Engine == Direct:
			return Scheduler{}, &badinput.Error{
				What: ask.Name + " is kube-scheduler itself, so the engine " + Direct + " cannot play it",
				Mend: "leave out --engine, or use " + Kube,
			}
		case ask.Nodes > MostNative:
			return Scheduler{}, &badinput.Error{
				What: fmt.Sprintf("%s cannot be asked about %d nodes: it simulates each domain in turn, for hours",
					ask.Name, ask.Nodes),
				Mend: fmt.Sprintf("name a fleet of at most %d nodes, or another scheduler", MostNative),
			}
		}
		profile = kube.Native
		s.Source, s.Discipline = "kube-scheduler 1.37.2 with its own gang and topology plugins", "greedy"
		s.TieRule = "kube-scheduler's: by chance between domains, and the root of a heap between nodes"
	}
	var err error
	s.Engine, err = kube.New(kube.Options{Profile: profile, Clock: wall})
	return s, err
}
