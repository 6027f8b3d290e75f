package app

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// merged returns the profiles without those that differ from an earlier one by their name only, and for each of these
// names the name of the earlier profile. Pods that give such a name are decoded with the earlier one: plugins have
// state, and of one profile there is one queue, one view of the fleet and one set of reservations, whatever the names
// by which pods know it.
func merged(
	profiles []schedulerconfig.KubeSchedulerProfile,
) (kept []schedulerconfig.KubeSchedulerProfile, aliases map[string]string) {
	aliases = make(map[string]string)
	for _, profile := range profiles {
		name, found := sameBefore(kept, profile)
		if found {
			aliases[profile.SchedulerName] = name
			continue
		}
		kept = append(kept, profile)
	}
	return kept, aliases
}

// sameBefore returns the name of the first profile that differs from another one by its name only.
func sameBefore(
	kept []schedulerconfig.KubeSchedulerProfile,
	profile schedulerconfig.KubeSchedulerProfile,
) (string, bool) {
	for _, earlier := range kept {
		renamed := profile
		renamed.SchedulerName = earlier.SchedulerName
		if apiequality.Semantic.DeepEqual(earlier, renamed) {
			return earlier.SchedulerName, true
		}
	}
	return "", false
}
