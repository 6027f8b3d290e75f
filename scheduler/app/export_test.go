package app

import schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

// LeastStart is the least time that a gang takes.
var LeastStart = leastStart

// Merged returns the profiles without aliases, and the aliases.
func Merged(
	profiles []schedulerconfig.KubeSchedulerProfile,
) (kept []schedulerconfig.KubeSchedulerProfile, aliases map[string]string) {
	return merged(profiles)
}
