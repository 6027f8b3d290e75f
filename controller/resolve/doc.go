// Package resolve finds the runtime of a TrainJob: the frozen one; before the first rendering the one in the cluster;
// for jobs that an earlier version rendered, the copy that it made.
package resolve
