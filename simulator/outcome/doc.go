// Package outcome turns what was seen of a run into what its user is told: where every rank went, how long each job
// waited and ran, and why one was not placed.
//
// A Ledger is fed every pod as it is seen, since pods may be gone when the run ends. Summarize then makes a Report of
// the ledger and the last state of the jobs; its JSON is that of lockstep up -o json, and WriteTable prints it for
// people. Nothing here asks a cluster or a clock.
package outcome
