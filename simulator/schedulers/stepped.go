package schedulers

import (
	"errors"

	"k8s.io/utils/clock"
)

func stepped(Ask, clock.PassiveClock) (Scheduler, error) {
	return Scheduler{}, errors.New("the engine kube is being built")
}
