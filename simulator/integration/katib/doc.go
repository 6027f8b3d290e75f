// Package katib asks Katib's own code about the sample of a sweep, in a module of its own: Katib's dependencies are
// older than Lockstep's.
//
//	cd simulator/integration/katib && go test ./...
package katib
