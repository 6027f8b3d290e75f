package topology

// Ledger is the state of a fleet: each node's free capacity and, where it is known, its total capacity. Both are
// indexed like the tree's nodes. Questions change nothing; a placement takes effect when the caller subtracts it from
// Free.
type Ledger struct {
	Tree *Tree
	Free []Capacity
	// Total distinguishes "not now" from "never": nil if it is not known.
	Total []Capacity
	// notes are a book's, nil if there is none.
	notes *notes
}

// Len returns the number of nodes.
func (l Ledger) Len() int {
	if l.Tree == nil {
		return 0
	}
	return l.Tree.Len()
}
