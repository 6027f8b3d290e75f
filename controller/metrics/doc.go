// Package metrics holds the controller's metrics in one struct. Label values come from finite lists, and
// namespaces: never the name of a job.
//
// The names follow the proposal for Kubeflow Trainer (kubeflow/trainer#3429). Counters count events since the process
// started, each transition once: when the write that records it has succeeded. Gauges are counted when they are read.
package metrics
