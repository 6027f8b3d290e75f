package turns

import (
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// line holds what waits to be handled. The highest priority goes first; within one, namespaces take turns; within a namespace, who came
// first. It is the order below a workqueue, which calls Touch, Push, Len and Pop, and sees to it that nothing stands in it twice.
type line struct {
	mu sync.Mutex
	// wanted is the priority that was asked for on behalf of each request since it was last taken. A request may be wanted before it
	// is pushed: while it waits for its time, or while it is being handled.
	wanted map[reconcile.Request]int
	// standing is the priority at which each request of the line stands.
	standing map[reconcile.Request]int
	// taken is the priority at which each request was last popped, until somebody asks.
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

// want asks for a priority. The highest asked for counts.
func (l *line) want(request reconcile.Request, priority int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wanted, ok := l.wanted[request]; !ok || priority > wanted {
		l.wanted[request] = priority
	}
}

// tookAt tells at which priority a request was taken, once.
func (l *line) tookAt(request reconcile.Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	priority := l.taken[request]
	delete(l.taken, request)
	return priority
}

// Touch moves a request that stands in the line up to the priority that has been asked for since, at the end of its namespace there.
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

// Len is how many requests wait.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.standing)
}

// Pop takes the request whose turn it is. The line must not be empty.
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
