// Package instruments holds the controller's metrics as one struct. Label values come from finite lists, and namespaces:
// never the name of a job.
//
// The names follow what is proposed for Kubeflow Trainer (kubeflow/trainer#3429). Counters count what happened since the
// process started, each transition once: when the write that records it has succeeded. Gauges are counted when they are read.
package instruments
