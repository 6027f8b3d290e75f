package progress

import "github.com/lockstep-project/lockstep/simulator/inputs/scenario"

// why returns the known reason of a job's wait.
func (c *counts) why(job int) string {
	free, asks := c.stock.there-c.stock.inUse, c.scene.Jobs[job].Accelerators
	var now string
	switch {
	case c.kept.job == job && c.kept.from == scenario.Forever:
		now = "is first, no end known for " + counted(c.kept.nodes, "node")
	case c.kept.job == job:
		now = "is first, " + counted(c.kept.nodes, "node") + " kept from " + span(c.kept.from)
	case asks > free:
		now = grouped(free) + " of " + counted(asks, "GPU") + " free"
	case c.past[job] == unasked:
		now = "not asked yet"
	default:
		now = "not for want of GPUs, " + grouped(free) + " are free"
	}
	switch c.past[job] {
	case preempted:
		now += "; was preempted"
	case disrupted:
		now += "; lost a node"
	case unasked, refused:
	}
	return now
}
