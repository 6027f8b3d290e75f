// Package compare finds which of several schedulers did better, from the scorecards of runs on the same inputs.
//
//	table, err := compare.Runs(cards)
//
// Runs are paired by their seed: both schedulers met the same submissions, so their difference is not blurred by the
// differences between seeds. Of each number the table has the mean of the seeds, and the mean difference to the first
// scheduler with Student's 95 % interval of the paired differences; the number of seeds that agree with its sign needs
// no such assumption. Intervals are of one number each: of fifty numbers that do not differ, two or three will look as
// if they did.
package compare
