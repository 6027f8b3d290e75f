// Package realnode runs real nodes on this machine: a kubelet and a containerd each, which run real images in real
// containers.
//
// Everything is in namespaces of its own. A test binary that calls Main starts itself again in a network, a mount and a
// process namespace, and the cluster, the nodes and the tests run in there: no address, no mount and no process is
// visible outside, and all processes end with the binary. Only control groups remain, which Main removes. Each node has
// another mount namespace, because kubelets and containerd insist on some paths.
//
// It needs root, and the programs that make nodes builds into bin/node.
package realnode
