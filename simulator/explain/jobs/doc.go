// Package jobs renders TrainJobs with the controller's own planner, webhooks and names, but without a cluster. A job
// that is not submitted yet becomes the gangs and pods that the scheduler would see.
package jobs
