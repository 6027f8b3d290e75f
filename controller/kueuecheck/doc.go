// Package kueuecheck answers Kueue's AdmissionChecks of Lockstep: it has Kueue revoke the admission of a job for which
// lockstep-scheduler finds no nodes, so that the job does not hold quota, and a rack that Kueue chose, for ever. See
// DECISIONS.md of controller.
package kueuecheck
