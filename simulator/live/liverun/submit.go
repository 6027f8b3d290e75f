package liverun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// Creator stores a user's object in the cluster and returns the stored object.
type Creator interface {
	Create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Catalog is the runtimes that the embedded cluster has of itself.
type Catalog []*unstructured.Unstructured

// ShippedRuntimes reads the runtimes of the chart, in the order of their files.
func ShippedRuntimes() (Catalog, error) {
	runtimes, err := chart.Runtimes()
	if err != nil {
		return nil, fmt.Errorf("reading the shipped runtimes: %w", err)
	}
	return runtimes, nil
}

// find returns the cluster-wide runtime of that name.
func (c Catalog) find(kind, name string) (*unstructured.Unstructured, bool) {
	for _, runtime := range c {
		if runtime.GetKind() == kind && runtime.GetName() == name {
			return runtime, true
		}
	}
	return nil, false
}

// Check refuses a workload before anything is started: a TrainJob whose runtime is nowhere, or whose run time is none.
func Check(w workload.Workload, catalog Catalog) error {
	names := make([]string, len(catalog))
	for i, runtime := range catalog {
		names[i] = runtime.GetName()
	}
	known := func(kind, _, name string) bool {
		_, found := catalog.find(kind, name)
		return found
	}
	if err := w.CheckRuntimes(known, names...); err != nil {
		return err
	}
	for _, job := range w.TrainJobs() {
		if _, err := job.RunTime(); err != nil {
			return err
		}
	}
	return nil
}

// Submit stores every object of the workload, TrainJobs last and with the run time of their fake pods, and returns the
// jobs in the order of submission: that of the workload, except for those with a delay after the others. An object that
// the API server refuses is bad input. The workload has passed Check.
func Submit(
	ctx context.Context, creator Creator, w workload.Workload, catalog Catalog, clk clock.Clock,
) ([]summary.JobObservation, error) {
	jobs := map[string]bool{}
	for _, job := range w.TrainJobs() {
		jobs[job.Where()] = true
	}
	for _, object := range w.Objects {
		if jobs[object.Where()] {
			continue
		}
		if _, err := creator.Create(ctx, object.Object); err != nil {
			return nil, refused(object, err)
		}
	}
	turns, err := turnsOf(w)
	if err != nil {
		return nil, err
	}
	var submitted []summary.JobObservation
	begin := clk.Now()
	for _, turn := range turns {
		if err := waitUntil(ctx, clk, begin.Add(turn.after)); err != nil {
			return nil, err
		}
		runtime, err := runtimeOf(w, catalog, turn.job)
		if err != nil {
			return nil, err
		}
		observation, err := submitJob(ctx, creator, turn.job, runtime, clk.Now())
		if err != nil {
			return nil, err
		}
		submitted = append(submitted, observation)
	}
	return submitted, nil
}

// turn is the time at which a job is submitted, counted from the beginning.
type turn struct {
	job   workload.Object
	after time.Duration
}

func turnsOf(w workload.Workload) ([]turn, error) {
	var turns []turn
	for _, job := range w.TrainJobs() {
		after, err := job.SubmitAfter()
		if err != nil {
			return nil, err
		}
		turns = append(turns, turn{job: job, after: after})
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.after, b.after) })
	return turns, nil
}

// waitUntil returns when the moment is reached, or ctx has ended.
func waitUntil(ctx context.Context, clk clock.Clock, at time.Time) error {
	rest := at.Sub(clk.Now())
	if rest <= 0 {
		return nil
	}
	select {
	case <-clk.After(rest):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runtimeOf finds the runtime of a job in the workload or among the cluster's own.
func runtimeOf(w workload.Workload, catalog Catalog, job workload.Object) (*unstructured.Unstructured, error) {
	ref := workload.RuntimeOf(job.Object)
	if own, found := w.Runtime(ref); found {
		return own.Object, nil
	}
	if shipped, found := catalog.find(ref.Kind, ref.Name); found {
		return shipped, nil
	}
	return nil, fmt.Errorf("%s: there is no %s: the workload was not checked", job.Where(), ref)
}

func submitJob(
	ctx context.Context, creator Creator, job workload.Object, runtime *unstructured.Unstructured, now time.Time,
) (summary.JobObservation, error) {
	timed, err := job.WithRunTime(workload.ReplicatedJobs(runtime))
	if err != nil {
		return summary.JobObservation{}, err
	}
	stored, err := creator.Create(ctx, timed)
	if err != nil {
		return summary.JobObservation{}, refused(job, err)
	}
	return summary.JobObservation{TrainJob: stored, Framework: summary.Framework(runtime), SubmittedAt: now}, nil
}

// refused makes the API server's refusal of a user's object bad input; a fault stays a fault.
func refused(object workload.Object, err error) error {
	if meta.IsNoMatchError(err) {
		return &badinput.Error{
			Where: object.Where(), What: "the cluster has no kind " + object.Object.GroupVersionKind().String(),
			Mend: "correct apiVersion and kind, or take the object out",
		}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code >= 500 {
		return fmt.Errorf("%s: %w", object.Where(), err)
	}
	return &badinput.Error{
		Where: object.Where(), What: "the API server refuses " + object.String() + ": " + status.Status().Message,
		Mend: "correct the object",
	}
}
