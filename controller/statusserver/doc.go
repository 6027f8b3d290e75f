// Package statusserver accepts progress reports from training pods, and writes them into the status of their TrainJobs.
// The contract is Kubeflow Trainer's (KEP-2779); docs/trainer-status.md is for authors of trainers.
//
// A report passes through one file after another: its job and the answer (handler.go, answer.go), a token with the
// job's audience (token.go), the proof that it is a token of one of the job's pods (identity.go), the limits of these
// proofs (limits.go), the report's content (body.go), and the one field that is written (write.go).
package statusserver
