// Package manifests holds what gets applied to a cluster, embedded so that a binary carries the manifests it was built
// with: CRDs, RBAC, the scheduler's configuration and the runtimes.
package manifests

import "embed"

// Files holds every manifest under its path in this folder. The folders are the order of application: crds, then
// controller, scheduler and datacache (accounts and roles), then runtimes. The samples are files for users and are not embedded.
//
//go:embed namespace.yaml crds/*.yaml controller/*.yaml scheduler/*.yaml datacache/*.yaml runtimes/*.yaml
var Files embed.FS
