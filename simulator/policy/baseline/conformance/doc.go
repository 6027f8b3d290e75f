// Package conformance asks Kueue itself where its topology-aware scheduling would put podsets, and writes questions and
// answers down. The tests of package baseline hold our policy to them.
//
// The questions are put to Kueue's own snapshot of a ClusterQueue (pkg/cache/scheduler), in the way that its scheduler
// asks it, with the default feature gates. The assignment passes through the encoding of the Workload's status, because
// the topology ungater reads ranks from it.
//
// It is a module of its own because Kueue is built against Kubernetes 0.36, and we against 0.37.
package conformance
