// Package cluster is the embedded cluster: a real Kubernetes control plane (etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler), JobSet, KWOK for the nodes, and Lockstep's own controller and scheduler,
// each a child process of the caller, without containers and without root. Kueue joins them where it is asked for.
//
// Start builds missing binaries, starts the children in order and installs the objects of package manifests; Stop ends
// every child and only those. The controller and the scheduler run under the ClusterRoles of manifests, never as admin,
// so that permissions that suffice here suffice in a cluster. Everything listens on loopback, on ports that were free.
//
// One file is one duty: build.go makes the binaries, state.go owns the state directory, process.go one child, plan.go
// lists the children and their flags, install.go applies manifests, cluster.go is the order; Kueue has files of its own
// for the same duties.
package cluster
