package direct

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// queue is who waits, in lanes of those that ask the same question: if one does not fit, nobody behind it in its lane does.
type queue struct {
	lanes []*lane
	of    map[question]*lane
	size  int
}

// question is what the gangs of a lane have in common.
type question struct {
	shapes string
	needed int
}

func questionOf(g topology.Gang, needed int) question { return question{decision.Question(g), needed} }

// unknown is the promise of those that make none. It is longer than all others.
const unknown = math.MaxInt64 - 1

// lane is one question's gangs in the queue's order.
type lane struct {
	spots []spot
	// closed is the shortest promise that was refused since all were asked last: whoever promises as much or more need not
	// be asked. 0 if there is no room for anybody.
	closed int64
	// next is the first that may have to be asked.
	next int
}

// spot is a gang's: its rank in the order of all jobs of the scene, and how long it runs at most.
type spot struct {
	rank    int
	promise int64
}

// lane finds or makes the lane of a question.
func (q *queue) lane(of question) *lane {
	if q.of == nil {
		q.of = make(map[question]*lane)
	}
	l, ok := q.of[of]
	if !ok {
		l = &lane{closed: math.MaxInt64}
		q.of[of], q.lanes = l, append(q.lanes, l)
	}
	return l
}

// add lets a gang wait in its lane.
func (q *queue) add(l *lane, s spot) {
	at, _ := slices.BinarySearchFunc(l.spots, s.rank, func(o spot, rank int) int { return cmp.Compare(o.rank, rank) })
	l.spots = slices.Insert(l.spots, at, s)
	l.next = min(l.next, at)
	q.size++
}

// take removes the gang that is asked.
func (q *queue) take(l *lane) {
	if l.next == 0 {
		l.spots = l.spots[1:] // the rest need not move
	} else {
		l.spots = slices.Delete(l.spots, l.next, l.next+1)
	}
	q.size--
}

// open has all asked again.
func (q *queue) open() {
	for _, l := range q.lanes {
		l.closed, l.next = math.MaxInt64, 0
	}
}

// reopen has those asked again who were refused for the sake of the place that is kept.
func (q *queue) reopen() {
	for _, l := range q.lanes {
		if l.closed > 0 {
			l.closed, l.next = math.MaxInt64, 0
		}
	}
}

// candidate moves on to the next in the lane who may have to be asked. It reports whether there is one.
func (l *lane) candidate() bool {
	if l.closed == 0 {
		l.next = len(l.spots)
	}
	for l.next < len(l.spots) && l.spots[l.next].promise >= l.closed {
		l.next++
	}
	return l.next < len(l.spots)
}

// first is the lane in which the first of those who may have to be asked waits; nil if nobody has to be asked.
func (q *queue) first() *lane {
	var first *lane
	for _, l := range q.lanes {
		if l.candidate() && (first == nil || l.spots[l.next].rank < first.spots[first.next].rank) {
			first = l
		}
	}
	return first
}

// front is the rank of the first that waits, -1 if nobody does.
func (q *queue) front() int {
	front := -1
	for _, l := range q.lanes {
		if len(l.spots) > 0 && (front < 0 || l.spots[0].rank < front) {
			front = l.spots[0].rank
		}
	}
	return front
}
