// Package manifests holds what gets applied to a cluster, embedded so that a binary carries the manifests it was built
// with: CRDs, RBAC, the scheduler's configuration, the runtimes and the webhook configurations.
package manifests

import "embed"

// Files holds every manifest under its path in this folder. The folders are the order of application: crds, then
// gangs (what scheduler and controller need both), controller, access, scheduler and datacache (accounts and roles; access those of users), then runtimes, and webhooks when the
// controller answers; install runs the controller in a cluster that has machines of its own, and takeover lets it take the lease of
// Kubeflow Trainer. Not embedded are files for users: the samples.
//
//go:embed namespace.yaml crds/*.yaml gangs/*.yaml controller/*.yaml access/*.yaml scheduler/*.yaml datacache/*.yaml runtimes/*.yaml webhooks/*.yaml install/*.yaml takeover/*.yaml
var Files embed.FS
