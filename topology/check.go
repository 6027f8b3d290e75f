package topology

import "fmt"

// rules are a gang's rules with levels as positions on the tree's ladder: -1 if there is no such rule, the number of
// levels for single nodes.
type rules struct {
	required, preferred, segment, spread, spares int
	// running is set if a member of the gang runs.
	running bool
}

// check returns the first fault of a question that does not depend on the fleet's state, and resolves the levels.
func check(l Ledger, g Gang) (rules, error) {
	c := &checker{l: l, g: g}
	for _, find := range []func() error{c.ledger, c.members, c.shapes, c.numbers} {
		if err := find(); err != nil {
			return rules{}, err
		}
	}
	r, err := c.levels()
	if err != nil {
		return rules{}, err
	}
	r.running = c.running
	if err := c.box(&r); err != nil {
		return rules{}, err
	}
	if err := c.spares(r); err != nil {
		return rules{}, err
	}
	return r, c.segments(r)
}

// spares checks that some domain would have a node left for a member.
func (c *checker) spares(r rules) error {
	if r.spares < 0 {
		return nil
	}
	lay := c.l.Tree.layout().holding(r.spares)
	at := lay.position(r.spares)
	for _, u := range lay.vertices {
		if u.level == at && u.last-u.first > c.g.Spares.Nodes {
			return nil
		}
	}
	return c.fail(
		ErrTooLarge,
		"no domain has more nodes",
		"%s per %s",
		quantity(c.g.Spares.Nodes, "spare"),
		c.g.Spares.Level,
	)
}

type checker struct {
	l Ledger
	g Gang
	// running is set by members if one of them runs.
	running bool
}

func (c *checker) fail(cause error, hint, format string, args ...any) error {
	return &InputError{Of: "gang " + c.g.Name, What: fmt.Sprintf(format, args...), Hint: hint, Cause: cause}
}

func (c *checker) ledger() error {
	if c.l.Tree == nil {
		return c.fail(ErrTree, "", "the fleet")
	}
	n := c.l.Tree.Len()
	if len(c.l.Free) != n {
		return c.fail(ErrLength, "", "%d free capacities for %d nodes", len(c.l.Free), n)
	}
	if c.l.Total != nil && len(c.l.Total) != n {
		return c.fail(ErrLength, "", "%d total capacities for %d nodes", len(c.l.Total), n)
	}
	if c.l.noted() != nil {
		return nil // the book has looked
	}
	if err := c.capacities("free", c.l.Free); err != nil {
		return err
	}
	return c.capacities("total", c.l.Total)
}

func (c *checker) capacities(which string, of []Capacity) error {
	for i, capacity := range of {
		if r := negative(capacity); r >= 0 && c.l.Tree.Node(i) != "" {
			return c.fail(ErrNegative, "", "%s capacity %d of node %s", which, capacity[r], c.l.Tree.Node(i))
		}
	}
	return nil
}

// negative returns the first resource with less than nothing, -1 for none.
func negative(c Capacity) int {
	for r, n := range c {
		if n < 0 {
			return r
		}
	}
	return -1
}

func (c *checker) members() error {
	if len(c.g.Members) == 0 {
		return c.fail(ErrNoMembers, "", "no members")
	}
	members, shapes := c.g.Members, uint(len(c.g.Shapes))
	for i := range members { // without copies, since there may be 100,000 of them
		m := &members[i]
		if uint(m.Shape) < shapes && !m.Placed {
			continue
		}
		if uint(m.Shape) >= shapes {
			return c.fail(ErrShape, "", "shape %d of member %s", m.Shape, m.Name)
		}
		if c.l.Tree.Node(m.Node) == "" {
			return c.fail(ErrNode, "", "node %d of member %s", m.Node, m.Name)
		}
		c.running = true
	}
	return nil
}

func (c *checker) shapes() error {
	for i, s := range c.g.Shapes {
		if s.Barred != nil && len(s.Barred) != c.l.Tree.Len() {
			return c.fail(ErrLength, "", "%d rules of shape %d for %d nodes", len(s.Barred), i, c.l.Tree.Len())
		}
		if r := negative(s.Demand); r >= 0 {
			return c.fail(ErrNegative, "", "demand %d of shape %d", s.Demand[r], i)
		}
	}
	return nil
}

func (c *checker) numbers() error {
	for _, n := range []struct {
		name  string
		value int
	}{
		{"minimum", c.g.Min},
		{"segment size", c.g.Segment.Size},
		{"spread", c.g.Spread.Max},
		{"spares", c.g.Spares.Nodes},
		{"members per node", c.g.PerNode},
	} {
		if n.value < 0 {
			return c.fail(ErrNegative, "", "%s %d", n.name, n.value)
		}
	}
	if c.g.Communication.String() == "unknown" {
		return c.fail(ErrPattern, "ring, chain or all-to-all", "communication %d", c.g.Communication)
	}
	if c.g.Min > len(c.g.Members) {
		return c.fail(ErrMin, "", "minimum %d of %d members", c.g.Min, len(c.g.Members))
	}
	return nil
}

func (c *checker) levels() (rules, error) {
	all := [...]struct {
		rule, level string
		used        bool
	}{
		{"required", c.g.Required, c.g.Required != ""},
		{"preferred", c.g.Preferred, c.g.Preferred != ""},
		{"segment", c.g.Segment.Level, c.g.Segment.Size > 0},
		{"spread", c.g.Spread.Level, c.g.Spread.Max > 0},
		{"spares", c.g.Spares.Level, c.g.Spares.Nodes > 0},
	}
	var at [len(all)]int
	for i, l := range all {
		at[i] = -1
		if !l.used {
			continue
		}
		if l.level == "" {
			return rules{}, c.fail(ErrNoLevel, knownLevels(c.l.Tree.levels), "%s", l.rule)
		}
		var ok bool
		if at[i], ok = c.l.Tree.Level(l.level); !ok {
			return rules{}, c.fail(ErrLevel, knownLevels(c.l.Tree.levels), "%s level %s", l.rule, l.level)
		}
	}
	return rules{required: at[0], preferred: at[1], segment: at[2], spread: at[3], spares: at[4]}, nil
}

// segments checks the rules that depend on segments, and finds those that no state of the fleet could satisfy.
func (c *checker) segments(r rules) error {
	size := c.g.Segment.Size
	if size == 0 {
		return nil
	}
	if r.spread > r.segment {
		return c.fail(
			ErrInside,
			"spread over the segments' level or one further out",
			"spread over %s",
			c.g.Spread.Level,
		)
	}
	main := mainKind(c.g)
	if c.g.least() == 0 {
		return c.fail(ErrUnequal, "", "segments of %d for %d members", size, len(main.ranks))
	}
	least := c.g
	least.Members = c.g.Members[:c.g.least()]
	if needed := min(size, len(mainKind(least).ranks)); c.largest(r.segment, main) < needed {
		return c.fail(ErrTooLarge, "", "segment of %d in one %s", needed, c.g.Segment.Level)
	}
	return nil
}

// largest returns the number of members of the kind that the largest empty domain of the level holds, an upper bound
// where the totals are not known.
func (c *checker) largest(level int, k kind) int {
	lay := c.l.Tree.layout().holding(level)
	at, largest := lay.position(level), 0
	for _, u := range lay.vertices {
		if u.level != at {
			continue
		}
		total := 0
		for _, node := range lay.nodes[u.first:u.last] {
			room := unlimited
			if c.l.Total != nil {
				room = k.room(c.l.Total[node])
			}
			if c.g.PerNode > 0 {
				room = min(room, c.g.PerNode)
			}
			total += room
		}
		largest = max(largest, total)
	}
	return largest
}
