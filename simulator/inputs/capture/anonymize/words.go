package anonymize

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/topology"
)

// shortNumber is the number of digits of the longest number that stays.
const shortNumber = 5

// word reports whether a text does not identify its writer: a short number, or a word that programs compare with.
func word(s string) bool {
	switch s {
	// Addresses on which hosts listen.
	case "0.0.0.0", "127.0.0.1", "::", "::1":
		return true
	// Kinds.
	case "ClusterTrainingRuntime", "CronJob", "DaemonSet", "Deployment", "Job", "JobSet", "Namespace", "Node",
		"PersistentVolume", "PersistentVolumeClaim", "Pod", "PodGroup", "PriorityClass", "ReplicaSet",
		"ReplicationController", "ResourceClaim", "ResourceClaimTemplate", "Service", "StatefulSet", "TrainJob",
		"TrainingRuntime", "Workload":
		return true
	// Resources that claims are reserved for.
	case "podgroups", "pods":
		return true
	// Conditions and their reasons.
	case "Complete", "DisruptionTarget", "Failed", "PodGroupInitiallyScheduled", "PodScheduled",
		"PreemptionByScheduler", "Ready", "Resumed", "SchedulerError", "SchedulingGated", "Suspended",
		"Unschedulable":
		return true
	// Parts of a TrainJob, and frameworks.
	case "dataset-initializer", "deepspeed", "flux", "initializer", "jax", "launcher", "mlx", "model-initializer",
		"mpi", "node", "plain", "torch", "torchtune", "trainer", "xgboost":
		return true
	// Wishes.
	case "all-to-all", "chain", "lockstep", "native", "none", "off", "on", "preferred", "replace", "required",
		"restart", "ring":
		return true
	// Other words that programs compare with.
	case "None", "amd64", "arm64", "default-scheduler", "false", "linux", "lockstep-scheduler", "metadata.name",
		"system-cluster-critical", "system-node-critical", "true", "windows", "yes":
		return true
	case "":
		return true
	}
	return len(s) <= shortNumber && isNumber(s)
}

func isNumber(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// own are the domains whose keys every cluster has.
func own() []string {
	return []string{"kubernetes.io", "k8s.io", "x-k8s.io", "nvidia.com", "lockstep.dev", "kubeflow.org"}
}

// levels are the keys and names of the levels that topology knows.
func levels() map[string]bool {
	known := map[string]bool{}
	for _, level := range topology.KnownLevels() {
		known[level.Key], known[level.Name] = true, true
	}
	return known
}

// keepsKey reports whether a key of a label, an annotation, a taint or the like is common to all clusters.
func keepsKey(key string) bool {
	if tier, ok := strings.CutPrefix(key, "fabric.topograph.run/tier-"); ok {
		return isNumber(tier)
	}
	domain, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc(own(), func(known string) bool {
		return domain == known || strings.HasSuffix(domain, "."+known)
	})
}

// speaksForItself reports whether the value of an annotation of ours is no name: a word, a number, an instant or a
// duration.
func speaksForItself(value string) bool {
	if word(value) || isNumber(value) {
		return true
	}
	if _, err := time.Parse(time.RFC3339, value); err == nil {
		return true
	}
	_, err := time.ParseDuration(value)
	return err == nil
}
