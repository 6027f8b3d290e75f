// Package controller assembles Lockstep's TrainJob controller: it probes the cluster's features and runs the reconciler
// of package trainjob. See DESIGN.md.
package controller
