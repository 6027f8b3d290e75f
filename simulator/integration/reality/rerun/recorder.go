package rerun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Labels and annotations that JobSet and the Job's controller write on pods.
const (
	labelJob     = "jobset.sigs.k8s.io/jobset-name"
	labelAttempt = "jobset.sigs.k8s.io/restart-attempt"
	labelRank    = "batch.kubernetes.io/job-completion-index"
)

// Run is one start of a gang, as a watcher saw it. Instants at which nothing was seen are zero.
type Run struct {
	Gang string
	// Attempt is 0 for the first, and one more after each loss of a member.
	Attempt int
	// Whole is the time at which its last pod was seen to exist, First that at which the first of them was seen on a
	// node, Bound that of the last. Ending is the time at which the first was seen to end, Free that of the last.
	Whole, First, Bound, Ending, Free time.Time
	// Nodes are the nodes of its members, by rank; empty for those without.
	Nodes []string
	// Stays are the times at which the members were seen on these nodes, by rank.
	Stays []Stay

	exist, bound, ended int
}

// Stay holds the times at which a member was seen bound to its node, and at which it was seen to end. Instants without
// an observation are zero.
type Stay struct{ From, To time.Time }

// Recorder observes the pods of a namespace, and records the instants of their changes.
type Recorder struct {
	clock   clock.PassiveClock
	members map[string]int

	mu   sync.Mutex
	runs map[runKey]*Run
	pods map[types.UID]*seen
	// changed is the time of the last observation.
	changed time.Time
}

type runKey struct {
	gang    string
	attempt int
}

// seen is the observed state of a pod.
type seen struct{ bound, ended bool }

// NewRecorder makes a recorder of a plan's gangs.
func NewRecorder(plan Plan, clk clock.PassiveClock) *Recorder {
	r := &Recorder{
		clock: clk, members: make(map[string]int), runs: make(map[runKey]*Run), pods: make(map[types.UID]*seen),
	}
	for _, g := range plan.Gangs {
		r.members[g.Name] = g.Members
	}
	return r
}

// Watch begins to watch; it returns when the watch is under way, and the watch ends with ctx.
func (r *Recorder) Watch(ctx context.Context, client kubernetes.Interface, namespace string) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.see(object, false) },
		UpdateFunc: func(_, object any) { r.see(object, false) },
		DeleteFunc: func(object any) { r.see(object, true) },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	return nil
}

func (r *Recorder) see(object any, gone bool) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		r.Observe(pod, gone)
	}
}

// Observe records the current state of a pod; gone reports that the pod is deleted.
func (r *Recorder) Observe(pod *corev1.Pod, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gang := pod.Labels[labelJob]
	rank, err := strconv.Atoi(pod.Labels[labelRank])
	members := r.members[gang]
	if err != nil || rank < 0 || rank >= members {
		return
	}
	now := r.clock.Now()
	attempt, _ := strconv.Atoi(pod.Labels[labelAttempt]) // JobSet writes a number
	run := r.runs[runKey{gang, attempt}]
	if run == nil {
		run = &Run{Gang: gang, Attempt: attempt, Nodes: make([]string, members), Stays: make([]Stay, members)}
		r.runs[runKey{gang, attempt}] = run
	}
	known := r.pods[pod.UID]
	if known == nil {
		known = &seen{}
		r.pods[pod.UID] = known
		r.changed = now
		if run.exist++; run.exist == members {
			run.Whole = now
		}
	}
	if pod.Spec.NodeName != "" && !known.bound {
		known.bound, r.changed, run.Nodes[rank] = true, now, pod.Spec.NodeName
		run.First, run.Stays[rank].From = earliest(run.First, now), now
		if run.bound++; run.bound == members {
			run.Bound = now
		}
	}
	over := gone || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if over && !known.ended {
		known.ended, r.changed = true, now
		run.Ending, run.Stays[rank].To = earliest(run.Ending, now), now
		if run.ended++; run.ended == members {
			run.Free = now
		}
	}
}

// earliest is the instant that is known, or else the other one.
func earliest(known, now time.Time) time.Time {
	if known.IsZero() {
		return now
	}
	return known
}

// Runs returns copies of the observed runs, by gang and attempt.
func (r *Recorder) Runs() []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Run, 0, len(r.runs))
	for _, run := range r.runs {
		copied := *run
		copied.Nodes, copied.Stays = slices.Clone(run.Nodes), slices.Clone(run.Stays)
		out = append(out, copied)
	}
	slices.SortFunc(out, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Gang, b.Gang), cmp.Compare(a.Attempt, b.Attempt))
	})
	return out
}

// Changed returns the time of the last observation; zero if there was none.
func (r *Recorder) Changed() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}
