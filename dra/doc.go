// Package dra says which devices a node can give: how many pods with the same claims it can still take, and if none,
// why. It computes values from values. The devices themselves are assigned by Kubernetes' structured allocator; nothing
// here assigns any.
//
// The words:
//
//   - An Inventory is what ResourceSlices publish, by node. It is changed slice by slice and node by node.
//   - A Ledger is what ResourceClaims have taken. A Branch of it answers what-ifs: without the claims of victims, with
//     claims that are about to be allocated.
//   - A Demand is what one pod asks for: its claims that are not allocated yet, read together with their device classes.
//     If it cannot be asked, Demand.Fault says why in one sentence: its gang waits, nothing else is affected.
//   - A Fitter answers questions. It remembers answers by the class of a node, which is all that a demand can tell nodes
//     apart by, so that thousands of nodes are looked at as tens of classes.
//   - A Fit is the answer: how many pods, and what stops the next one.
//   - Confirm asks the allocator itself for chosen nodes and returns its results. Nothing is reserved by asking.
//   - Choices are what a claim that all members of a gang share could be given, and the nodes that reach each.
//   - Capacity puts Fits into the numbers of package topology.
//
// How a scheduler plugin uses it: keep one Inventory and one Ledger in step with the informers (slices as upstream's
// tracker lists them, DeviceTaintRules applied); read each member's claims with ReadPod; add Capacity's columns to the
// topology ledger and shapes; plan; Confirm the chosen nodes on a Branch of the ledger; if one refuses, bar it and plan
// again. For preemption, ask the same with Ledger.WithoutClaims(those of the victims).
//
// An Inventory, a Ledger that is being changed and a Fitter each belong to one goroutine at a time.
package dra
