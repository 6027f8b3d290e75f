// Package statusserver takes reports of how far trainings are, from the pods that train, and writes them into the status
// of their TrainJobs. The contract is Kubeflow Trainer's (KEP-2779); docs/trainer-status.md is for those who report.
//
// A report goes through one file after another: which job it is about and what is answered (handler.go, answer.go), a
// token that claims to be meant for that (token.go), the proof that it is a token of one of the job's pods (identity.go),
// how often that may be (limits.go), what the report says (body.go), and the one field that is written (write.go).
package statusserver
