package capture

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// scheduler is the first name of Lockstep's scheduler. Pods that give another of its names stand in a snapshot with
// this one.
const scheduler = "lockstep-scheduler"

// marks reads the gang marks of the pods of each namespace, by its PodGroups.
type marks struct {
	groups map[string][]*schedulingv1beta1.PodGroup
	// known are the readings of namespaces whose PodGroups are all there.
	known map[string]gangapi.Reading
}

func newMarks() *marks {
	return &marks{make(map[string][]*schedulingv1beta1.PodGroup), make(map[string]gangapi.Reading)}
}

// learn takes in a PodGroup. All have to be taken in before the first pod is read.
func (m *marks) learn(o object) {
	group, ok := o.(*schedulingv1beta1.PodGroup)
	if !ok || group.Annotations[dialects.AnnotationDialect] == "" {
		return
	}
	stated := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: group.Namespace, Name: group.Name, Annotations: group.Annotations,
	}}
	m.groups[group.Namespace] = append(m.groups[group.Namespace], stated)
}

// read has a pod name its gang and its scheduler as the scheduler reads them.
func (m *marks) read(pod *corev1.Pod) {
	reading, known := m.known[pod.Namespace]
	if !known {
		reading = dialects.Stated(scheduler, m.groups[pod.Namespace]).Reading()
		m.known[pod.Namespace] = reading
	}
	reading.Read(pod)
}

// Marks returns the reader of the marks of a namespace's pods.
func (s *Snapshot) Marks(namespace string) *dialects.Reader {
	var groups []*schedulingv1beta1.PodGroup
	for _, group := range s.PodGroups {
		if group.Namespace == namespace {
			groups = append(groups, group)
		}
	}
	return dialects.Stated(scheduler, groups)
}

// normalize brings an object into its form in a snapshot: it names its kind, and fields that no placement depends on
// are removed.
func normalize(k kind, o object) {
	o.GetObjectKind().SetGroupVersionKind(k.gvk())
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		o.SetAnnotations(nil)
	}
}

// ended reports whether an object is a pod that has run: no scheduler counts it.
func ended(o object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}
