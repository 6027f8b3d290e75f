package capture

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// normalize makes an object as it stands in a snapshot: it names its kind, and its gang if it is a pod, and has lost what no placement depends on.
func normalize(k kind, o object) {
	o.GetObjectKind().SetGroupVersionKind(k.gvk())
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		o.SetAnnotations(nil)
	}
	if pod, ok := o.(*corev1.Pod); ok {
		gangapi.Adopt(pod, marks().Membership)
	}
}

// ended is whether an object is a pod that has run: no scheduler counts it.
func ended(o object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// marks reads the marks of other controllers on pods of the scheduler that the shipped profile names.
var marks = sync.OnceValue(func() *dialects.Reader { //nolint:gochecknoglobals // made once
	explicit, owners := dialects.Builtin()
	return dialects.NewReader(slices.Concat(explicit, owners), []string{"lockstep-scheduler"})
})
