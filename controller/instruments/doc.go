// Package instruments holds the controller's metrics as one struct. Label values come from finite lists: never the name
// of a job.
package instruments
