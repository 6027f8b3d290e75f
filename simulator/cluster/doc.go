// Package cluster is the embedded cluster: a real Kubernetes control plane (etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler), JobSet, KWOK for the nodes, and Lockstep's own controller and scheduler, each
// a child process of the caller, without containers and without root. Kueue joins them where it is asked for.
//
// Start builds what is missing, starts the children in order and installs what manifests ships; Stop ends every child
// and only those. The controller and the scheduler run under the ClusterRoles of manifests, never as admin: what works
// here works in a cluster. Everything listens on loopback, on ports that were free.
//
// One file is one duty: build.go makes the binaries, state.go owns the state directory, process.go one child,
// plan.go says which children there are and with which flags, install.go applies manifests, cluster.go is the order; Kueue
// has files of its own for the same duties.
package cluster
