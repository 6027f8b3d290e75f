// Package conformance asks Kubeflow Trainer 2.3.0 itself what it would make of the planner's golden cases, and writes
// that beside them. The planner's tests compare it with what we make.
//
// It is a module of its own because Trainer is built against Kubernetes 0.36, and we against 0.37.
package conformance
