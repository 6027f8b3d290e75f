// Package capture takes snapshots of clusters and reads them: all objects that a scheduler reads, in one file.
//
// A snapshot is lines of JSON, compressed with gzip if the file's name ends in .gz. The first line is the manifest: the
// format, the time and the server of the capture, and for every kind the number of objects that follow, or that the
// server does not serve it. Each further line is one object, {"resource":"nodes","object":{…}}: kinds in the order of
// the manifest, objects by namespace and name. Two snapshots of the same state differ in the instant and in resource
// versions only.
//
// Each kind is as of one instant, but not all kinds as of the same: they are listed one after another.
//
// A snapshot never contains: Secrets and ConfigMaps; the values of containers' environment variables, which often hold
// secrets and which no placement depends on; managedFields and kubectl's last-applied copy; fields that the Kubernetes
// release of our go.mod does not know; pods that have ended: only their number is stored. Commands, arguments and
// addresses are included unchanged unless the snapshot is anonymized (see package anonymize).
//
// Files of plain Kubernetes objects are read too (ReadObjects): those of kwokctl and kubectl.
package capture
