// Package gangapi hides the API in which a cluster stores its gangs.
//
// Kubernetes 1.37 has PodGroups of its own (scheduling.k8s.io/v1beta1) behind feature gates that users of no managed
// service can set. On other clusters gangs are custom resources of the same shape in group scheduling.lockstep.dev, and
// pods join a gang by a label. Everything above this package works with the native Go types: Client and AddToScheme let
// these types travel under either name.
//
// The seam has three parts: a client whose PodGroups are those of the chosen API, a decoder that fills in a pod's
// schedulingGroup from its label (in every mode, so that a cluster can change its mode while gangs run), and the choice
// itself, which is made once and stored in a ConfigMap.
package gangapi
