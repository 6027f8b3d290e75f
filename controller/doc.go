// Package controller is Lockstep's TrainJob controller put together: it asks the cluster what it offers and runs the
// reconciler of package trainjob. See DESIGN.md.
package controller
