package turns

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// round holds the requests that wait at one priority: namespaces in the order of their turns, and in each its requests
// as they arrived.
type round struct {
	order   []string
	waiting map[string][]reconcile.Request
}

func newRound() *round { return &round{waiting: make(map[string][]reconcile.Request)} }

// add appends a request. A namespace that had none waiting gets the last turn of the round.
func (r *round) add(request reconcile.Request) {
	if len(r.waiting[request.Namespace]) == 0 {
		r.order = append(r.order, request.Namespace)
	}
	r.waiting[request.Namespace] = append(r.waiting[request.Namespace], request)
}

// next takes the first request of the first namespace, and gives that namespace the last turn.
func (r *round) next() reconcile.Request {
	namespace := r.order[0]
	request := r.waiting[namespace][0]
	r.order = r.order[1:]
	if rest := r.waiting[namespace][1:]; len(rest) > 0 {
		r.waiting[namespace] = rest
		r.order = append(r.order, namespace)
	} else {
		delete(r.waiting, namespace)
	}
	return request
}

// drop takes a request out of the round, out of turn. A namespace has as many as it has jobs at most, and few are moved
// up.
func (r *round) drop(request reconcile.Request) {
	namespace := request.Namespace
	waiting := r.waiting[namespace]
	at := slices.Index(waiting, request)
	r.waiting[namespace] = slices.Delete(waiting, at, at+1)
	if len(r.waiting[namespace]) == 0 {
		delete(r.waiting, namespace)
		r.order = slices.DeleteFunc(r.order, func(other string) bool { return other == namespace })
	}
}
