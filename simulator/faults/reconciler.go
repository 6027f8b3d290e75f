package faults

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
)

// workers is the number of objects that a controller reconciles at a time.
const workers = 2

// reconciler is a process that reconciles objects.
type reconciler struct {
	*process

	reconcile func(context.Context, reconcile.Request) (reconcile.Result, error)
	limiter   workqueue.TypedRateLimiter[reconcile.Request]
	caches    map[string]*stepped.Informer
	// queue has those that wait, in their order, running those that are being reconciled.
	queue   []reconcile.Request
	running map[reconcile.Request]*attempt
}

// attempt is a reconciliation; again says that its object has changed since it began.
type attempt struct {
	over   atomic.Bool
	again  bool
	result reconcile.Result
	err    error
}

func (w *world) newReconciler(name string) *reconciler {
	r := &reconciler{
		process: w.newProcess(name), caches: make(map[string]*stepped.Informer),
		running: make(map[reconcile.Request]*attempt),
	}
	r.next = r.goOn
	return r
}

// start begins to reconcile. requests returns the objects to reconcile when one of a kind changed; old or now is nil.
func (r *reconciler) start(kinds []string, requests func(kind string, old, now client.Object) []reconcile.Request) {
	w := r.world
	w.processes = append(w.processes, r.process)
	for _, kind := range kinds {
		w.must(r.watch(kind, r.caches[kind], all, func(old, now client.Object) {
			for _, request := range requests(kind, old, now) {
				r.add(request)
			}
		}))
	}
	w.note("%s %d starts", r.name, w.born[r.name])
}

func (r *reconciler) add(request reconcile.Request) {
	if a := r.running[request]; a != nil {
		a.again = true
		return
	}
	if !slices.Contains(r.queue, request) {
		r.queue = append(r.queue, request)
	}
}

func (r *reconciler) addAfter(request reconcile.Request, d time.Duration) {
	r.world.after(max(d, time.Millisecond), func() { r.add(request) })
}

// goOn takes note of reconciliations that are over, and begins one.
func (r *reconciler) goOn() bool {
	var done []reconcile.Request
	for request, a := range r.running {
		if a.over.Load() {
			done = append(done, request)
		}
	}
	slices.SortFunc(done, func(a, b reconcile.Request) int { return compareNames(a.NamespacedName, b.NamespacedName) })
	for _, request := range done {
		r.finish(request)
	}
	if len(done) > 0 {
		return true
	}
	if len(r.running) >= workers || len(r.queue) == 0 || r.busy.Load() {
		return false
	}
	request := r.queue[0]
	r.queue = r.queue[1:]
	a := &attempt{}
	r.running[request] = a
	r.step(func() {
		defer a.over.Store(true)
		a.result, a.err = r.reconcile(r.ctx, request)
	})
	return true
}

func (r *reconciler) finish(request reconcile.Request) {
	a := r.running[request]
	delete(r.running, request)
	switch {
	case a.err != nil:
		r.world.note("%s: %s: %v", r.name, request, a.err)
		r.addAfter(request, r.limiter.When(request))
	case a.result.RequeueAfter > 0:
		r.limiter.Forget(request)
		r.addAfter(request, a.result.RequeueAfter)
	default:
		r.limiter.Forget(request)
	}
	if a.again {
		r.add(request)
	}
}

// ownerOf is the request for the controller of an object of a kind; none if it has another one.
func ownerOf(kind string, o client.Object) []reconcile.Request {
	for _, ref := range o.GetOwnerReferences() {
		if isTrue(ref.Controller) && ref.Kind == kind {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
		}
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }
