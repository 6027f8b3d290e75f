// Package support gathers a support bundle: the data that a developer needs to answer a question about a cluster, in
// one archive, without secrets.
//
// A bundle has the doctor's findings, a snapshot that lockstep explain and lockstep simulate read, the objects of the
// installation and of the jobs' controllers, Events, and the logs of its pods. No Secret is read. Values of environment
// variables, commands and arguments of jobs, and annotations of unknown domains are removed, and any text in the form
// of a credential is replaced (package redact).
package support
