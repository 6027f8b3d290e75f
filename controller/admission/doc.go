// Package admission decides which TrainJobs and runtimes are admitted: Default returns the stored form, Validator the
// refusals. Both are functions of values but for two reads, the job's runtime and its JobSet; the rules about a job on
// a runtime are those of package plan, so that nothing is admitted that the reconciler refuses afterwards.
//
// Start at Register, which puts them on a webhook server.
package admission
