// Package trainjob reconciles TrainJobs: it plans (package plan), applies the plan, and writes the job's status.
//
// Start at Reconcile. Each other file has one duty: finding the runtime, applying, releasing, the conditions, the
// deadline, the watches. Its RBAC rules are in manifests/chart/rights.
package trainjob
