// Package movein changes manifests that were written for other gang schedulers, so that Lockstep schedules their pods.
//
// Documents takes the objects of one run as values and returns them changed, with one note for every field, label and
// annotation of the other scheduler. A note begins with a verdict:
//
//   - stays: Lockstep, or a controller that stays installed, reads it as before.
//   - changed: another field or annotation does its work in the manifest.
//   - removed: nothing of it is needed, or it cannot stay; the note says why.
//   - unread: it is still in the manifest, and nothing in Lockstep reads it.
//   - to do: the manifest does not work before this is done.
//
// There is one file for each source: volcano.go and volcanojob.go, kai.go, coscheduling.go, mpi.go, ray.go.
// scheduler/dialects decides whether Lockstep reads a mark: a pod is built from each template as the kind's controller
// would create it (pods.go), and the table reads it. Objects of other kinds pass unchanged, and so do objects without a
// sign of another scheduler.
package movein
