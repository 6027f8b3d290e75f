// Package scheduler lists the plugins that make a kube-scheduler place gangs. It is the only point of registration; the
// profile that puts them in order is manifests/scheduler/config.yaml.
package scheduler

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/gangqueue"
	"github.com/lockstep-project/lockstep/scheduler/parking"
)

// ProfileName is the schedulerName of the pods that Lockstep schedules.
const ProfileName = "lockstep-scheduler"

// Registry maps the plugins' names to what makes them. What is decided about gangs that do not fit is known to two of
// them: those that share a lot belong to one scheduler.
func Registry() runtime.Registry {
	lot := parking.NewLot(clock.RealClock{})
	return runtime.Registry{
		gangplacement.Name: gangplacement.New(lot),
		gangqueue.Name:     gangqueue.New(lot),
		gangpermit.Name:    gangpermit.New,
	}
}

// Options are the plugins as options of the scheduler command.
func Options() []app.Option {
	var options []app.Option
	for name, factory := range Registry() {
		options = append(options, app.WithPlugin(name, factory))
	}
	return options
}
