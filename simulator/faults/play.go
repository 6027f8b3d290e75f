package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
)

const (
	// done is the time after the last fault by which all jobs are over. gone is the time after the deletion of all jobs
	// by which nothing is left.
	done = 45 * time.Minute
	gone = 10 * time.Minute
	// pulse is the interval at which the world checks waiting processes although nothing is due, and whether enough has
	// happened. A waiting goroutine may wake it in between, and does not always: several goroutines of a scheduler wait
	// for each other, and not all begin in the same order.
	pulse = 3 * time.Second
	// restless is the number of steps at one instant that is a fault.
	restless = 10_000
)

// Result is the outcome of a scene.
type Result struct {
	// Broken are the invariants that did not hold, each once, in the order in which they broke.
	Broken []Violation
}

// calm stops upstream's error handlers from sleeping: they measure by the clock of the bubble that was first, and each
// bubble has a clock of its own.
//
//nolint:gochecknoglobals // what it sets is a global of apimachinery
var calm = sync.OnceFunc(func() { utilruntime.ErrorHandlers = nil }) //nolint:reassign // the only way to set it

var errRestless = errors.New("the processes do not come to rest at one instant")

// Bubble is the setting of a scene: a bubble of package testing/synctest, which is offered to tests only.
type Bubble struct {
	// Clock is the bubble's: a clock.RealClock there.
	Clock clock.Clock
	// Still waits until all goroutines of the bubble wait: synctest.Wait.
	Still func()
}

// Play plays a scene. Events are written to the log, nil for none; equal scenes give equal bytes. An error is a fault
// of the world, not of the tested programs.
func Play(ctx context.Context, scene Scene, in Bubble, log io.Writer) (Result, error) {
	calm()
	if err := stepped.SetGates(); err != nil {
		return Result{}, fmt.Errorf("playing a scene: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := newWorld(ctx, scene, in, log)
	if err != nil {
		return Result{}, err
	}
	w.populate()
	w.playAll()
	result := Result{Broken: w.checks.broken}
	w.close()
	return result, w.fault
}

// populate creates the initial objects, and schedules those that arrive later.
func (w *world) populate() {
	for _, o := range w.scene.runtimes() {
		w.create(o)
	}
	if w.scene.Claims {
		w.createClasses()
	}
	if w.scene.Channels {
		w.createChannelClass()
	}
	for at := range w.scene.Racks * w.scene.PerRack {
		w.addNode(at)
	}
	first := w.startScheduler()
	w.schedulers = append(w.schedulers, first)
	first.lead()
	w.start(controllerName)
	w.start(jobsetName)
	for _, j := range w.scene.Jobs {
		w.after(j.At, func() {
			switch {
			case w.deleted[j.Name]:
			case j.Native:
				w.createNative(j)
			default:
				w.create(w.scene.trainJobFor(j))
			}
		})
	}
	for _, f := range w.scene.Faults {
		if f.Bound > 0 {
			continue
		}
		w.after(f.At, func() { w.beginFault(f) })
		if over := w.begin.Add(f.At + f.For); over.After(w.quiet) {
			w.quiet = over
		}
	}
}

func (w *world) create(o client.Object) {
	_, err := w.server.Create(o)
	w.must(err)
}

// playAll plays until all jobs are over, then deletes them and checks for leftovers.
func (w *world) playAll() {
	last := w.begin.Add(comes)
	if w.quiet.After(last) {
		last = w.quiet
	}
	w.playUntil(last.Add(done), func() bool { return w.now().After(w.quiet) && w.lasting == 0 && w.allOver() })
	w.checks.over()
	for _, j := range w.server.List("TrainJob", "") {
		w.must(
			client.IgnoreNotFound(w.server.Delete("TrainJob", client.ObjectKeyFromObject(j), metav1.DeleteOptions{})),
		)
	}
	for _, j := range w.scene.Jobs {
		if j.Native {
			w.deleteNative(j.Name)
		}
	}
	w.playUntil(w.now().Add(gone), func() bool { return len(w.leftovers()) == 0 })
	w.checks.gone()
}

// allOver reports whether all jobs have arrived and ended, but for those that were deleted.
func (w *world) allOver() bool {
	return !slices.ContainsFunc(w.scene.Jobs, func(j Job) bool { return !w.isOver(j) && !w.deleted[j.Name] })
}

func (w *world) isOver(j Job) bool {
	if j.Native {
		job := w.native(j.Name)
		return job != nil &&
			(fakecluster.Has(job, batchv1.JobComplete) || j.GivesUp && fakecluster.Has(job, batchv1.JobFailed))
	}
	found, err := w.server.Get("TrainJob", client.ObjectKey{Namespace: namespace, Name: j.Name})
	job, ok := found.(*trainerv1alpha1.TrainJob)
	return err == nil && ok && job.Ended()
}

// playUntil advances from instant to instant until the given one, or until enough has happened.
func (w *world) playUntil(end time.Time, enough func() bool) {
	for w.fault == nil && w.ctx.Err() == nil {
		w.settle()
		w.checks.look()
		if w.since()%pulse == 0 && enough() || !w.now().Before(end) {
			return
		}
		w.clock.Sleep(w.soonest().Sub(w.now()))
		w.still()
		for _, p := range w.processes {
			p.tick()
		}
		for _, s := range w.schedulers {
			if s.isLeading() && slices.Contains(w.processes, s.process) {
				s.bringBack()
			}
		}
	}
}

// settle does due work until none is left.
func (w *world) settle() {
	for steps := 0; w.fault == nil; steps++ {
		if steps > restless {
			w.fault = errRestless
			return
		}
		w.rest()
		do, ok := w.agenda.take(w.now())
		if !ok {
			return
		}
		do()
	}
}

// soonest returns the time of the next due event.
func (w *world) soonest() time.Time {
	first := w.begin.Add(w.now().Sub(w.begin).Truncate(pulse) + pulse)
	earliest := func(at time.Time) {
		if at.After(w.now()) && at.Before(first) {
			first = at
		}
	}
	if len(w.agenda.entries) > 0 {
		earliest(w.agenda.entries[0].at)
	}
	for _, p := range w.processes {
		if at, ok := p.clock.Soonest(); ok {
			earliest(at.Add(-w.skew[p.name]))
		}
	}
	if w.leader != nil {
		earliest(w.leader.soonest())
	}
	return first
}

// close ends all processes.
func (w *world) close() {
	for _, s := range w.schedulers {
		if slices.Contains(w.processes, s.process) {
			s.die()
		}
	}
	for len(w.processes) > 0 {
		w.kill(w.processes[0])
	}
	w.still()
}

// leftovers are objects that are there only because of jobs.
func (w *world) leftovers() []string {
	var left []string
	for _, kind := range w.server.Kinds() {
		switch kind {
		case "Node", "PriorityClass", "ClusterTrainingRuntime", "DeviceClass", "ResourceClaimTemplate", "ResourceSlice":
			continue
		}
		for _, o := range w.server.List(kind, "") {
			if kind == "ConfigMap" && o.GetNamespace() == system {
				continue // the scheduler's leases
			}
			left = append(left, kind+" "+client.ObjectKeyFromObject(o).String())
		}
	}
	return left
}
