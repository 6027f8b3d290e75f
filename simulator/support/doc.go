// Package support gathers a support bundle: what a developer needs to answer a question about a cluster, in one archive, without secrets.
//
// A bundle has what the doctor finds, a snapshot that lockstep explain and lockstep simulate read, the objects of the installation and of the jobs'
// controllers, Events, and the logs of its pods. No Secret is read. Values of environment variables, commands and arguments
// of jobs, and annotations of unknown domains are removed, and what has the form of a credential is replaced everywhere (package redact).
package support
