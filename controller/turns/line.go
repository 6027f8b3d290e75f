package turns

import (
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// line holds the waiting requests. The highest priority is popped first; within one, namespaces take turns; within a
// namespace, requests are popped in order of arrival. It is the order below a workqueue, which calls Touch, Push, Len
// and Pop, and ensures that no request is in it twice.
type line struct {
	mu sync.Mutex
	// wanted is the priority that was requested for each request since it was last taken. A request may be wanted
	// before it is pushed: while it waits for its time, or while it is being handled.
	wanted map[reconcile.Request]int
	// standing is the priority at which each request of the line stands.
	standing map[reconcile.Request]int
	// taken is the priority at which each request was last popped, until it is read.
	taken  map[reconcile.Request]int
	rounds map[int]*round
}

func newLine() *line {
	return &line{
		wanted:   make(map[reconcile.Request]int),
		standing: make(map[reconcile.Request]int),
		taken:    make(map[reconcile.Request]int),
		rounds:   make(map[int]*round),
	}
}

// want asks for a priority. The highest requested priority counts.
func (l *line) want(request reconcile.Request, priority int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wanted, ok := l.wanted[request]; !ok || priority > wanted {
		l.wanted[request] = priority
	}
}

// tookAt returns, once, the priority at which a request was taken.
func (l *line) tookAt(request reconcile.Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	priority := l.taken[request]
	delete(l.taken, request)
	return priority
}

// Touch moves a request in the line up to the priority requested since, at the end of its namespace there.
func (l *line) Touch(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, stands := l.standing[request]
	if !stands || l.wanted[request] <= at {
		return
	}
	l.rounds[at].drop(request)
	l.trim(at)
	l.stand(request)
}

// Push appends a request.
func (l *line) Push(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stand(request)
}

// Len returns the number of requests that wait.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.standing)
}

// Pop takes the next request. The line must not be empty.
func (l *line) Pop() reconcile.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	highest := slices.Max(slices.Collect(maps.Keys(l.rounds)))
	request := l.rounds[highest].next()
	l.trim(highest)
	delete(l.standing, request)
	delete(l.wanted, request)
	l.taken[request] = highest
	return request
}

func (l *line) stand(request reconcile.Request) {
	priority := l.wanted[request]
	if l.rounds[priority] == nil {
		l.rounds[priority] = newRound()
	}
	l.rounds[priority].add(request)
	l.standing[request] = priority
}

func (l *line) trim(priority int) {
	if len(l.rounds[priority].order) == 0 {
		delete(l.rounds, priority)
	}
}
