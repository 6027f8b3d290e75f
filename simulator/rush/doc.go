// Package rush creates many TrainJobs at once and measures how soon they are what they ask to be, and what that costs the
// controller. It sees the cluster as a user does, through the API server, and the controller through its own metrics.
package rush
