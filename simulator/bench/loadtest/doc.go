// Package loadtest creates many TrainJobs at once and measures the time until they reach the requested state, and the cost
// for the controller. It sees the cluster as a user does, through the API server, and the controller through its own
// metrics.
package loadtest
