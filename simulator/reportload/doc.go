// Package reportload loads the controller's status server as the pods of many TrainJobs do, and measures what it answers, what it writes,
// and how old the reports are that the TrainJobs show.
package reportload
