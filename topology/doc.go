// Package topology places gangs. It knows domains, nodes and capacity; it knows neither Kubernetes nor time, and
// nothing in it is random. A decision is a value computed from values: the caller takes the snapshot before and commits
// the answer after.
//
// Start at Place. The words:
//
//   - A Level is one rung of a ladder of node labels, outermost first (block, rack, clique).
//   - A Domain is a set of nodes that share a level. Its identity is the whole path of label values from the outermost level,
//     because values repeat: rack r1 of block b1 is not rack r1 of block b2. Accelerator levels (NVLink) are a hierarchy
//     of their own, with values that are unique in the fleet: their domains may lie across those of the network.
//   - A node that lacks the label of a level is outside every domain of that level. It stays in its domains at the levels
//     whose labels it has: fleets mix depths, and a level that only some machines have must not push the others out of
//     the levels below it. The gap stays in the path, so no node with a gap shares a domain with a node without it.
//   - A Ledger is a Tree and each node's free capacity.
//   - A Gang is members in rank order, each of a Shape, and rules; all of them are placed or none, unless it is elastic.
//     Members whose shapes do not differ are of one kind.
//   - A Placement is the answer yes: a node for every member, and how good it is. A Shortfall is the answer no, in
//     numbers. An error means that the question is invalid.
//   - The cost of a placement counts the edges of the gang's communication that cross boundaries, by level and weight.
//
// # Promises
//
// The tests of a promise have its number in their names: go test -run P5_ runs those of P5, and TestPromises fails if a
// promise has none. DESIGN.md lists the gangs for which P3 and P4 hold exactly.
//
//   - P1: a placement takes no more than is free, counting all members together, and no barred node.
//   - P2: a placement obeys every rule of the gang.
//   - P3: a gang is placed whenever any assignment of its members to nodes obeys the rules; of an elastic gang, the most
//     members that can be.
//   - P4: no placement of these members, in any order of ranks, costs less. Where that is not promised, Bound is still a
//     proven lower bound.
//   - P5: of placements that cost the same, the one in the innermost and tightest domain is taken, that uses the roomiest
//     domains least; of domains that look alike the first by name holds most. Room is that for the gang itself.
//   - P6: ranks follow label-path order: a ring over a fresh gang of one kind crosses the boundaries of a level exactly as
//     often as the number of domains used there, and never if one domain is used.
//   - P7: the answer depends on nothing but the values given: not on the order of the nodes, nor on their other labels; and
//     other names for nodes and domains change no cost.
//   - P8: a shortfall's numbers add up: every node is outside, barred, full or open, and the nearest domain holds fewer
//     members than were asked for.
//   - P9: no input makes Place panic. Wrong input is an InputError that names it, and not fitting is never an error.
//   - P10: more free capacity never makes the cost higher, nor a gang that fits unfit, where P3 and P4 hold exactly.
//
// Evict, Reserve and Admit answer the questions after a shortfall: which gangs would have to leave, when there will be
// room, and which gangs may start before. Fragmentation and Largest measure the state of a fleet.
package topology
