// Package resolve finds the runtime that a TrainJob means: the snapshot that was taken when the job was first rendered,
// and before that the runtime as it is in the cluster.
package resolve
