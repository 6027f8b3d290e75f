// Package topology decides where a gang goes. It knows domains, nodes and capacity; it does not know Kubernetes, time or
// chance. A decision is a value computed from values: the caller takes the snapshot before and commits the answer after.
//
// Start at Place. The words:
//
//   - A Level is one rung of a ladder of node labels, outermost first (block, rack, clique).
//   - A Domain is what nodes share at a level. Its identity is the whole path of label values from the outermost level,
//     because values repeat: rack r1 of block b1 is not rack r1 of block b2.
//   - A node that lacks the label of a level is outside every domain of that level. It keeps its domains at the levels
//     whose labels it has: fleets mix depths, and a level that only some machines have must not push the others out of
//     the levels below it. The gap stays in the path, so no node with a gap shares a domain with a node without it.
//   - A Gang is members in rank order, each of a Shape; all of them are placed or none.
//   - A Placement says yes: a node for every member. A Shortfall says no, in numbers.
//
// # Promises
//
// Each promise has a test of the same name.
//
//   - P1: a placement takes no more than is free, counting all members together, and no barred node.
//   - P2: a placement never leaves one domain of the required level.
//   - P3: a gang of one shape is placed whenever any assignment of its members to nodes exists. For several shapes this
//     is not promised: packings are tried with the larger demand first, then in rank order.
//   - P4: a gang of one shape goes into the smallest sufficient domain: no domain of a level further in holds it (a
//     single node is further in than every level). Among the domains of that level it takes the one in which the fewest
//     free slots are left, then the first in path order.
//   - P5: inside its domain a gang of one shape uses the fewest child domains possible, the largest being filled and the
//     last one being that in which the fewest free slots are left; and so on in each child.
//   - P6: ranks of one shape follow label-path order, so for one shape a ring over the ranks crosses the boundaries of a
//     level exactly as often as the number of domains used there, and never if that is one.
//   - P7: the answer depends on nothing but the values given: not on the order of the nodes, nor on their other labels.
//   - P8: a shortfall's numbers add up: every node is outside the level, barred, full or open, and the nearest domain
//     holds fewer members than were asked for.
//   - P9: no input makes Place panic. A fault of the caller (a list of the wrong length) is a shortfall that names it.
package topology
