// Package admission decides what of TrainJobs and runtimes is let in: Default is what is stored, Validator what is
// refused. Both are functions of values but for two reads, the job's runtime and its JobSet; the rules about a job on a
// runtime are those of package plan, so that nothing is let in that the reconciler refuses afterwards.
//
// Start at Register, which puts them on a webhook server.
package admission
