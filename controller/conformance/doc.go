// Package conformance renders the planner's golden cases with Kubeflow Trainer 2.3.0 itself, as folders of whole files
// (lockstep's command cases unpacks them and stores the answers). The planner's tests compare the answers with our
// renderings.
//
// It is a module of its own because Trainer is built with Kubernetes 0.36, and Lockstep with 0.37.
package conformance
