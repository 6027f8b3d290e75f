package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// cacheScheme is that of datasets that a service streams: there are no files to be mounted.
const cacheScheme = "cache://"

// cacheVariables are the variables without which Kubeflow's initializer of a cache exits with an error, in Kubeflow
// Trainer 2.3.
func cacheVariables() []string {
	return []string{"METADATA_LOC", "IAM_ROLE", "CACHE_IMAGE", "TRAIN_JOB_NAME"}
}

// streamed reports whether the job's dataset is streamed from a cache that its initializer creates.
func (d *draft) streamed() bool {
	wanted := d.job.Spec.Initializer
	return wanted != nil && wanted.Dataset != nil && wanted.Dataset.StorageURI != nil &&
		strings.HasPrefix(*wanted.Dataset.StorageURI, cacheScheme)
}

// creates returns the kinds that the job's own pods create.
func (d *draft) creates() []schema.GroupVersionKind {
	if !d.streamed() {
		return nil
	}
	return []schema.GroupVersionKind{{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}}
}

// uncached warns of variables that the initializer of a cache lacks. Those of a Secret are not known.
func uncached(initializer *corev1.Container) []string {
	if len(initializer.EnvFrom) > 0 {
		return nil
	}
	missing := slices.DeleteFunc(cacheVariables(), func(name string) bool {
		return slices.ContainsFunc(initializer.Env, func(set corev1.EnvVar) bool {
			return set.Name == name && (set.Value != "" || set.ValueFrom != nil)
		})
	})
	if len(missing) == 0 {
		return nil
	}
	return []string{"spec.initializer.dataset.env: without " + strings.Join(missing, ", ") +
		" Kubeflow's initializer of a cache exits with an error; set what is missing (docs/data-cache.md)"}
}
