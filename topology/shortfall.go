package topology

// Shortfall is the answer no: the question, the nearest domains, and the obstacles. It is not an error: the answer may
// differ when the ledger changes.
//
// Outside, Barred, Full and Open count every node of the tree once. For a gang of several kinds they are those of the
// kind that lacked places in the nearest domain.
type Shortfall struct {
	Gang string
	// Members is the number to be placed: of an elastic gang the fewest that would do.
	Members int
	// Level is the required level; the zero Level if none was required and the whole fleet is too small.
	Level Level
	// TPU is the shape of the TPU slices that members ask for; empty for none.
	TPU string
	// Box is the shape that the gang asks for; empty for none. Nearest are the tori then, each by its best box.
	Box string
	// Nearest are the domains of that level that hold most of the members, at most three, best first.
	Nearest []Near
	// Levels is the nearest domain of every level of the tree, outermost first, where a level has one: it shows how far
	// the requirement would have to be relaxed.
	Levels []Near
	// Lacking is the first member without a place in the nearest domain if the gang has several kinds, else empty.
	Lacking string
	// Limits are the gang's own rules that cost it places in the nearest domain.
	Limits []Limit
	// Never is set if the members would not fit either if every node were empty. It needs the ledger's Total.
	Never bool
	// Unoffered are the resources that a member needs and no node has any of, even empty. It needs the ledger's Total,
	// and the gang's Resources.
	Unoffered []string
	// Stray is a running member that breaks the gang's rules where it is: nothing can be placed beside it.
	Stray string
	// Outside is the number of nodes that lack the label of a level that a rule is about.
	Outside int
	// Barred are the rules that bar members from nodes inside the level, the one with most nodes first.
	Barred []Rule
	// Full is the number of nodes without room for a single member.
	Full int
	// Open is the number of nodes with room for at least one.
	Open int
}

// Near is a domain that nearly holds the gang.
type Near struct {
	Domain Domain
	// Holds is the number of members that it holds, Lacks the number of further members that it would have to hold.
	Holds, Lacks int
	// Full is the number of nodes in it that only other load prevents from holding a member: some of it would have to
	// leave.
	Full int
}

// Limit is a rule of the gang and the number of further members that the nearest domain would hold without it.
type Limit struct {
	Rule    string
	Members int
}

// Rule is the reason that bars members from nodes, in the caller's words, and the number of these nodes.
type Rule struct {
	Rule  string
	Nodes int
}
