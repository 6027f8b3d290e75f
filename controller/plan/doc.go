// Package plan turns a runtime and a TrainJob into the objects to apply. It is a function from values to values: no
// client, no clock, no order that depends on a map, and its inputs are never changed.
//
// Start at New. The same Validate serves New, the reconciler and, later, the webhook.
package plan
