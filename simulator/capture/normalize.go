package capture

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// normalize makes an object as it stands in a snapshot: it names its kind, and its gang if it is a pod, and has lost what nobody places by and what may
// be secret.
func normalize(k kind, o object) {
	o.GetObjectKind().SetGroupVersionKind(k.gvk())
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		o.SetAnnotations(nil)
	}
	if pod, ok := o.(*corev1.Pod); ok {
		gangapi.Adopt(pod)
	}
	forgetEnvironment(reflect.ValueOf(o))
}

// forgetEnvironment empties the value of every environment variable, wherever one stands: pods, templates, jobs, patches.
func forgetEnvironment(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			forgetEnvironment(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			forgetEnvironment(v.Index(i))
		}
	case reflect.Struct:
		if variable, ok := reflect.TypeAssert[*corev1.EnvVar](v.Addr()); ok {
			variable.Value = ""
			return
		}
		for field, value := range v.Fields() {
			if field.IsExported() {
				forgetEnvironment(value)
			}
		}
	default: // variables are not in maps, and nothing else holds any
	}
}

// ended is whether an object is a pod that has run: no scheduler counts it.
func ended(o object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}
