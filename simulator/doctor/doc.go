// Package doctor looks at a cluster before Lockstep is installed, and after: what would run, in which mode, beside whom, and what is missing. Gather
// asks the API server, and changes nothing; Judge is a function of the answers.
package doctor
