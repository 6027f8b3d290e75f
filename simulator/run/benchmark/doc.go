// Package benchmark plays the committed list of comparisons, and writes the results as one document, with the fleet,
// the trace, the seeds, the compared schedulers, and the command that reproduces the numbers. An interrupted benchmark
// resumes where it was.
package benchmark
