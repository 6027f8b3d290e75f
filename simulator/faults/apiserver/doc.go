// Package apiserver is a model of kube-apiserver, exact enough for controllers to be tried on: versions and conflicts,
// subresources, generations, finalizers, graces of pods, the three kinds of patches and server-side apply, defaults by
// Kubernetes' own code, and a history for watches that can be compacted.
//
// It is a value that its caller changes: no goroutines, no locks, and the time is handed in. Objects that it returns
// are shared and must not be changed.
//
// # Differences from kube-apiserver
//
// Nothing is validated and no client is refused for lack of rights; package integration tests those. Server-side apply
// knows the objects of one manager as they were applied last, merges maps and replaces lists, which is right as long as
// no two managers share a list. Status is the field of that name, and belongs to the subresource for all kinds but
// ConfigMaps and the like, which have none.
package apiserver
