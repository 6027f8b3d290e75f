// Package cases reads and writes the planner's golden cases: one txtar file for each, with the objects of a user and an
// administrator, Kubeflow Trainer's rendering of them, and Lockstep's.
//
// A part is whole, or it is the difference from a base, which its header names:
//
//	-- runtime.yaml from torch-defaults --    the same part of another case
//	-- want.yaml from upstream.yaml --        another part of this case
//
// A difference is a unified diff with the YAML path of a change in the place of line numbers, so that a change of the
// base moves no other line. It is applied to the base when it is read: callers see whole parts only. An empty
// difference means that both are equal.
package cases
