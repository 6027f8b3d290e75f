package openb

import (
	"math"
	"math/rand/v2"
)

// board caches the score of every node for every shape that has arrived. Since a pod changes one node only, few scores
// are computed again when a shape next arrives: those of the nodes that changed since its last arrival.
type board struct {
	world  *world
	shapes []Shape
	policy Policy
	chance *rand.Rand
	// scores are those of each shape's nodes, none for a shape that did not arrive yet; read is the part of changed
	// that they contain.
	scores [][]int
	read   []int
	// changed are the nodes that took pods, in the order in which they did.
	changed []int
	// seen is the arrival's number at which each node was last scored again.
	seen    []int
	arrival int
}

// noRoom is the score of nodes on which a shape does not fit.
const noRoom = math.MinInt

func newBoard(w *world, shapes []Shape, policy Policy, chance *rand.Rand) *board {
	return &board{
		world: w, shapes: shapes, policy: policy, chance: chance,
		scores: make([][]int, len(shapes)), read: make([]int, len(shapes)), seen: make([]int, len(w.nodes)),
	}
}

// nowhere is the index of no node.
const nowhere = -1

// arrive places a pod of a shape, and returns the node and the GPUs it was given; without room for it, the node is
// nowhere.
func (b *board) arrive(shape int) (node int, gpus []int) {
	b.refresh(shape)
	node = b.best(b.scores[shape])
	if node == nowhere {
		return nowhere, nil
	}
	s, n := &b.shapes[shape], &b.world.nodes[node]
	if s.Shared() {
		gpus = []int{b.policy.Share(n, s)}
	} else {
		gpus = n.wholly(s.GPUs)
	}
	b.world.place(node, s, gpus)
	b.changed = append(b.changed, node)
	return node, gpus
}

// refresh brings the scores of a shape up to date.
func (b *board) refresh(shape int) {
	b.arrival++
	s := &b.shapes[shape]
	if b.scores[shape] == nil {
		scores := make([]int, len(b.world.nodes))
		for i := range scores {
			scores[i] = b.score(i, s)
		}
		b.scores[shape] = scores
	} else {
		for _, node := range b.changed[b.read[shape]:] {
			if b.seen[node] < b.arrival {
				b.seen[node] = b.arrival
				b.scores[shape][node] = b.score(node, s)
			}
		}
	}
	b.read[shape] = len(b.changed)
}

func (b *board) score(node int, s *Shape) int {
	n := &b.world.nodes[node]
	if !n.Fits(s) {
		return noRoom
	}
	return b.policy.Score(n, s)
}

// best is a node with the highest score by the policy's rule for ties, or nowhere if no node has room.
func (b *board) best(scores []int) int {
	best, first, ties := noRoom, nowhere, 0
	for i, score := range scores {
		switch {
		case score > best:
			best, first, ties = score, i, 1
		case score == best:
			ties++
		}
	}
	if first == nowhere || b.policy.Tie() == FirstNode {
		return first
	}
	skip := b.chance.IntN(ties)
	for i := first; ; i++ {
		if scores[i] == best {
			if skip == 0 {
				return i
			}
			skip--
		}
	}
}
