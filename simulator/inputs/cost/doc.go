// Package cost computes the cost in time of a placement, a start and a failure. It is a pure core of integers: no
// clock, no Kubernetes, and the same answers on every machine.
//
// A job's nominal run time is that on its best possible placement. On another placement it runs
//
//	nominal × (1 − share + share × t(placement) / t(best))
//
// where share is the part of an iteration that is communication (shares.go), t the α–β time of a hierarchical
// all-reduce over the boundaries that the placement crosses (network.go, collective.go), and best the layout of the
// same members on the empty fleet that uses the fewest domains and fills them evenly (best.go). Before a run trains it
// assembles, and after an eviction or a failure it loads its checkpoint (startup.go). Nodes, NVLink domains and racks
// fail at published rates (failures.go).
//
// Every engine, and the ledger that checks them, ask one Model, so that a run ends when its work is done by either's
// reckoning.
package cost
