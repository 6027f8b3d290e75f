// Package scheduler lists the plugins that make a kube-scheduler place gangs. It is the only point of registration; the
// profile that puts them in order is manifests/chart/profile.yaml.
package scheduler

import (
	"context"
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/defaultpreemption"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/gangpermit"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/gangpreemption"
	"github.com/lockstep-project/lockstep/scheduler/gangqueue"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/reservations"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// ProfileName is the schedulerName of the pods that Lockstep schedules.
const ProfileName = "lockstep-scheduler"

// Registry returns the plugin factories, with a clock and their work beside the loop. The plugins share state (the
// queue of waiting gangs with its reserved places, the devices), so each scheduler needs its own Registry.
func Registry(t timing.Timing) runtime.Registry {
	registry, _ := plugins(t, parts{&gangplacement.Store{}, members.NewEnded(nil), always})
	return registry
}

// Plugins returns the factories that Registry returns, and the waiting queue that these plugins share. Its leases end
// with the process, and its pod informer has ended pods too: for a scheduler that is played.
func Plugins(t timing.Timing) (runtime.Registry, *waiting.Queue) {
	return plugins(t, parts{leads: always})
}

// Successive is Plugins for a scheduler that is played and that others precede and follow. It stores its leases in a
// ConfigMap and decides only while leads returns true. Its pod informer has no ended pods, as in production; ended
// follows those.
func Successive(t timing.Timing, ended *members.Ended, leads func() bool) (runtime.Registry, *waiting.Queue) {
	return plugins(t, parts{&gangplacement.Store{}, ended, leads})
}

// always leads: no other scheduler stands by.
func always() bool { return true }

// parts are those of a scheduler process that a played scheduler may lack.
type parts struct {
	store *gangplacement.Store
	ended *members.Ended
	leads func() bool
}

func plugins(t timing.Timing, has parts) (runtime.Registry, *waiting.Queue) {
	queue, stock := waiting.New(t, contention.DefaultPolicy()), &devices.Shared{}
	explain := explanation.NewWriters(t)
	return runtime.Registry{
		gangplacement.Name: gangplacement.New(gangplacement.Shared{
			Queue: queue, Devices: stock, Timing: t, Explain: explain, Store: has.store, Ended: has.ended,
		}),
		devices.Name:        devices.New(stock, gangplacement.Planned, t),
		gangpreemption.Name: gangpreemption.New(queue, stock, t),
		gangqueue.Name:      gangqueue.New(queue, has.ended, has.leads, explain, t),
		gangpermit.Name:     gangpermit.New(binder, has.ended, has.leads, t),

		defaultpreemption.Name: defaultpreemption.New(queue),
	}, queue
}

// binder makes the framework's own binder, to which gangpermit adds patience.
func binder(ctx context.Context, handle fwk.Handle) (fwk.BindPlugin, error) {
	plugin, err := defaultbinder.New(ctx, nil, handle)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", defaultbinder.Name, err)
	}
	bind, ok := plugin.(fwk.BindPlugin)
	if !ok {
		return nil, fmt.Errorf("%s does not bind", defaultbinder.Name)
	}
	return bind, nil
}

// Produce returns the plugins of a scheduler process that decides while leads says so. ended follows the pods that end.
// Reservations can be read at the command's secure port.
func Produce(leads func() bool, ended *members.Ended) (runtime.Registry, error) {
	c := clock.RealClock{}
	registry, queue := plugins(timing.With(c), parts{&gangplacement.Store{}, ended, leads})
	if err := reservations.Serve(queue, c); err != nil {
		return nil, err
	}
	return registry, nil
}
