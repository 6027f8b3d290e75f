// Package scheduler holds the manifests of lockstep-scheduler.
package scheduler

import _ "embed"

//go:embed config.yaml
var config []byte

// Config returns the profile of lockstep-scheduler, a KubeSchedulerConfiguration.
func Config() []byte { return append([]byte(nil), config...) }
