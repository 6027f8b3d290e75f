// Package nvlink plays NVIDIA's DRA driver for ComputeDomains in the embedded cluster, whose nodes have no kubelets: the controller
// that makes a domain's claim template, and the plugins of the nodes that publish channels, label the node for whose domain they
// prepared one, and take the label away some time after its last holder has gone.
//
// Decide is the driver's mind, from what is there to what is to be done; Driver is its eyes and hands. A pod with claims counts as
// prepared, and starts, when it has the annotation PreparedAnnotation; one whose node is labeled for another domain waits, and
// an Event says so, as a kubelet would.
package nvlink
