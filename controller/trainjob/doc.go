// Package trainjob reconciles TrainJobs: it plans (package plan), applies the plan, and writes back what became of it.
//
// Start at Reconcile. Each other file has one duty: finding the runtime, applying, releasing, the conditions, the
// deadline, the watches. What it may do in a cluster is written in manifests/chart/rights.
package trainjob
