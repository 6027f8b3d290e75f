// Package members finds the pods of a gang: those that have not ended in the scheduler's own informer, by an index; and
// those that have, which that informer leaves out, in one of its own.
package members

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// byGroup is the index of pods by the key of their PodGroup.
const byGroup = "lockstep.dev/pod-group"

// Index adds the index that Of needs, unless the informer has it. The informer must not have started.
func Index(pods cache.SharedIndexInformer) error {
	if _, has := pods.GetIndexer().GetIndexers()[byGroup]; has {
		return nil
	}
	if err := pods.AddIndexers(cache.Indexers{byGroup: groupOf}); err != nil {
		return fmt.Errorf("indexing pods by PodGroup: %w", err)
	}
	return nil
}

// groupOf is an index function.
func groupOf(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if key, ok := snapshot.GroupOf(pod); ok {
			return []string{key.String()}, nil
		}
	}
	return nil, nil
}

// Of returns the gang's pods in an indexed store, in the order of their names.
func Of(pods cache.Indexer, gang types.NamespacedName) []*corev1.Pod {
	objects, err := pods.ByIndex(byGroup, gang.String())
	if err != nil {
		return nil // it has no index, and so none of our pods
	}
	found := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			found = append(found, pod)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
