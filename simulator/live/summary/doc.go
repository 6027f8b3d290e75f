// Package summary turns the observations of a run into its report to the user: the node of every rank, the wait and the
// run time of each job, and the reason why one was not placed.
//
// A Ledger observes every pod, since pods may be deleted when the run ends. Summarize then makes a Report of the ledger
// and the last state of the jobs; its JSON is that of lockstep up -o json, and WriteTable prints it for people. Nothing
// here asks a cluster or a clock.
package summary
