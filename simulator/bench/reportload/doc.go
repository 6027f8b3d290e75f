// Package reportload loads the controller's status server as the pods of many TrainJobs do, and measures its responses,
// its writes, and the age of the reports in the TrainJobs' status.
package reportload
