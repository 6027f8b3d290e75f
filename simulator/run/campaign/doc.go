// Package campaign plays the committed list of contests, and writes the results as one document, with the fleet, the
// trace, the seeds, the compared schedulers, and the command that reproduces the numbers. An interrupted campaign
// resumes where it was.
package campaign
