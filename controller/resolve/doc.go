// Package resolve finds the runtime that a TrainJob means: the one that was frozen when the job was first rendered, before
// that the runtime as it is in the cluster, and for jobs of an earlier version the copy that it kept.
package resolve
