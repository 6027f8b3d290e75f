// Package servedkinds finds kinds that a job's own pods will create and that the cluster does not serve.
package servedkinds

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery lists the resources of a version, such as group/v1. It must ask the API server each time: kinds are
// installed and removed.
type Discovery interface {
	ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error)
}

// Kinds finds kinds that the cluster does not serve. The zero value finds none.
type Kinds struct {
	Discovery Discovery
}

// Missing returns one sentence for each of the kinds with a version that is not served. Kinds for which discovery fails
// are left out.
func (k Kinds) Missing(kinds []schema.GroupVersionKind) []string {
	if k.Discovery == nil {
		return nil
	}
	var out []string
	for _, kind := range kinds {
		if _, err := k.Discovery.ServerResourcesForGroupVersion(
			kind.GroupVersion().String(),
		); apierrors.IsNotFound(
			err,
		) {
			out = append(
				out,
				fmt.Sprintf("%s of %s is not served by this cluster, and the job's initializer creates one: "+
					"it ends without an error, the ranks start and find no cache; install %s", kind.Kind, kind.GroupVersion(), kind.Kind),
			)
		}
	}
	return out
}
