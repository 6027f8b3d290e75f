// Package nvlink plays NVIDIA's DRA driver for ComputeDomains in the embedded cluster, whose nodes have no kubelets:
// the controller that makes a domain's claim template, and the plugins of the nodes that publish channels, label the
// node for whose domain they prepared one, and remove the label some time after its last holder is deleted.
//
// Decide derives the actions from the state of the cluster; Driver observes the state and carries the actions out. A
// pod with claims counts as prepared, and starts, when it has the annotation PreparedAnnotation; one whose node is
// labeled for another domain waits, and an Event reports that, as a kubelet would.
package nvlink
