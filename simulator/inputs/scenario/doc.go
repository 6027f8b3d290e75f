// Package scenario holds the input of every engine as one value: a cluster, its running units, the jobs that arrive,
// and the events of its nodes. Nodes are numbers in the topology tree, jobs are gangs, instants and durations are whole
// seconds, except for submissions where Options.Exact leaves them unchanged.
//
// The value has no Kubernetes in it, and neither have its readers: engine/direct, measure, results, report. Package
// importer reads fleets, traces and snapshots into it. It leaves the API objects that engine/kube plays in
// Scenario.Objects.
package scenario
