package decision

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// These are contention's; the names here go when the last driver uses contention's turn.
type (
	// Order is contention.Order.
	Order = contention.Order
	// Ask is contention.Ask.
	Ask = contention.Ask
	// Answer is contention.Answer.
	Answer = contention.Answer
	// Refusal is contention.Refusal.
	Refusal = contention.Refusal
)

// Question is contention.Question.
func Question(g topology.Gang) string { return contention.Question(g) }

// Place is contention.Place.
func Place(l topology.Ledger, ask Ask) Answer { return contention.Place(l, ask) }
