// Package capture takes snapshots of clusters and reads them: everything that a scheduler looks at, in one file.
//
// A snapshot is lines of JSON, compressed with gzip if the file's name ends in .gz. The first line is the manifest: the
// format, when and of which server it was taken, and of every kind how many objects follow, or that the server does not
// serve it. Each further line is one object, {"resource":"nodes","object":{…}}: kinds in the order of the manifest,
// objects by namespace and name. Two snapshots of the same state differ in the instant and in resource versions only.
//
// Each kind is as of one instant, but not all kinds as of the same: they are listed one after another.
//
// What is never in a snapshot: Secrets and ConfigMaps; the values of containers' environment variables, which often hold
// what is secret and which no placement depends on; managedFields and kubectl's copy of what was applied; fields of which
// the Kubernetes release of our go.mod does not know; pods that have ended, of which only the number is kept. Commands,
// arguments and addresses are there as they are unless the snapshot is anonymized (see package anonymize).
//
// Files of plain Kubernetes objects are read too (ReadObjects): those of kwokctl and kubectl.
package capture
