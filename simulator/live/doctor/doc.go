// Package doctor examines a cluster before and after Lockstep is installed: the components that would run, their mode,
// the schedulers beside them, and missing requirements. Gather asks the API server, and changes nothing; Judge is a
// function of the answers.
package doctor
