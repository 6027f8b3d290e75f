package faults

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	gpu        = corev1.ResourceName("nvidia.com/gpu")
	rackLabel  = "topology.kubernetes.io/rack"
	high       = "high"
	protection = fakecluster.GroupProtection
)

// nodeFor is a machine.
func (s *Scene) nodeFor(at int) *corev1.Node {
	name := s.nodeName(at)
	has := corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceCPU:  resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
	}
	if !s.Claims {
		has[gpu] = *resource.NewQuantity(int64(s.GPUs), resource.DecimalSI)
	}
	rack := "r" + strconv.Itoa(at/s.PerRack)
	labels := map[string]string{corev1.LabelHostname: name, rackLabel: rack}
	if s.Channels {
		labels[topology.LabelClique] = rack + ".0"
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

// connects reports whether the ranks of a job get channels of a ComputeDomain: in one rack, each on a node of its own.
func (s *Scene) connects(j Job) bool { return s.Channels && j.Rack && !j.Native }

// trainJobFor returns the object that a user submits.
func (s *Scene) trainJobFor(j Job) *trainerv1alpha1.TrainJob {
	annotations := map[string]string{}
	switch {
	case s.connects(j):
		annotations[topology.AnnotationMNNVL] = "required"
	case j.Rack:
		annotations[topology.AnnotationRequiredTopology] = rackLabel
	}
	if j.Replace {
		annotations["lockstep.dev/on-disruption"] = "replace"
	}
	runtime := "plain"
	if j.Priority > 0 {
		runtime = high
	}
	gpus := *resource.NewQuantity(int64(j.GPUs), resource.DecimalSI)
	asks := &corev1.ResourceRequirements{
		Limits: corev1.ResourceList{gpu: gpus}, Requests: corev1.ResourceList{gpu: gpus},
	}
	if s.Claims {
		runtime, asks = claiming(runtime, j.GPUs), nil
	}
	return &trainerv1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: j.Name, Annotations: annotations},
		Spec: trainerv1alpha1.TrainJobSpec{
			RuntimeRef: trainerv1alpha1.RuntimeRef{
				APIGroup: new(
					trainerv1alpha1.Group,
				),
				Kind: new(trainerv1alpha1.ClusterTrainingRuntimeKind),
				Name: runtime,
			},
			Suspend: new(false),
			Trainer: &trainerv1alpha1.Trainer{
				NumNodes:         new(int32(j.Nodes)), //nolint:gosec // a scene has a few nodes
				ResourcesPerNode: asks,
			},
		},
	}
}

// runtimes returns the runtimes of TrainJobs, of ordinary priority and of high; with claims one of each size.
func (s *Scene) runtimes() []client.Object {
	var out []client.Object
	for _, name := range []string{"plain", high} {
		pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "node", Image: "example.com/node:1"}},
		}}
		if name == high {
			pod.Spec.PriorityClassName = high
		}
		if !s.Claims {
			out = append(out, runtimeOf(name, pod))
			continue
		}
		for _, gpus := range sizes() {
			claim(&pod.Spec, gpus)
			out = append(out, runtimeOf(claiming(name, gpus), *pod.DeepCopy()))
		}
	}
	return append(out, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: high}, Value: highPriority})
}

const highPriority = 1_000_100

// claiming is the name of the runtime whose ranks claim so many GPUs.
func claiming(runtime string, gpus int) string { return runtime + "-" + strconv.Itoa(gpus) }

func runtimeOf(name string, pod corev1.PodTemplateSpec) client.Object {
	r := &trainerv1alpha1.ClusterTrainingRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec.MLPolicy = &trainerv1alpha1.MLPolicy{NumNodes: new(int32(1))}
	job := jobsetv1alpha2.ReplicatedJob{Name: "node", Template: batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
		},
		Spec: batchv1.JobSpec{Template: pod},
	}}
	r.Spec.Template.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{job}
	return r
}

// admitPriority sets a priority by its class.
func admitPriority(class string, priority **int32) {
	value := int32(0)
	if class == high {
		value = highPriority
	}
	*priority = &value
}

// defaultJobSet sets the defaults of JobSet's webhook.
func defaultJobSet(js *jobsetv1alpha2.JobSet) {
	if js.Spec.SuccessPolicy == nil {
		js.Spec.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{Operator: jobsetv1alpha2.OperatorAll}
	}
	if js.Spec.StartupPolicy == nil {
		js.Spec.StartupPolicy = &jobsetv1alpha2.StartupPolicy{StartupPolicyOrder: jobsetv1alpha2.AnyOrder}
	}
	if js.Spec.Network == nil {
		js.Spec.Network = &jobsetv1alpha2.Network{}
	}
	if js.Spec.Network.EnableDNSHostnames == nil {
		js.Spec.Network.EnableDNSHostnames = new(true)
	}
	if js.Spec.Network.PublishNotReadyAddresses == nil {
		js.Spec.Network.PublishNotReadyAddresses = new(true)
	}
	for i := range js.Spec.ReplicatedJobs {
		of := &js.Spec.ReplicatedJobs[i].Template.Spec
		if of.CompletionMode == nil {
			of.CompletionMode = new(batchv1.IndexedCompletion)
		}
		if of.Template.Spec.RestartPolicy == "" {
			of.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}
	}
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// difference describes the change in a few words; "" if it is not worth a line.
func difference(old, now client.Object) string {
	switch now := now.(type) {
	case *corev1.Pod:
		was, ok := old.(*corev1.Pod)
		switch {
		case !ok:
			return ""
		case was.Spec.NodeName != now.Spec.NodeName:
			return "bound to " + now.Spec.NodeName
		case was.Status.Phase != now.Status.Phase:
			return string(now.Status.Phase) + " " + now.Status.Reason
		}
		return ""
	case *trainerv1alpha1.TrainJob:
		was, ok := old.(*trainerv1alpha1.TrainJob)
		if !ok || reflect.DeepEqual(was.Status.Conditions, now.Status.Conditions) {
			return ""
		}
		return words(now.Status.Conditions)
	case *jobsetv1alpha2.JobSet:
		was, ok := old.(*jobsetv1alpha2.JobSet)
		if !ok ||
			reflect.DeepEqual(was.Status.Conditions, now.Status.Conditions) &&
				was.Status.Restarts == now.Status.Restarts {
			return ""
		}
		return fmt.Sprintf("restarts %d %s", now.Status.Restarts, words(now.Status.Conditions))
	case *batchv1.Job:
		was, ok := old.(*batchv1.Job)
		if !ok || len(was.Status.Conditions) == len(now.Status.Conditions) {
			return ""
		}
		last := now.Status.Conditions[len(now.Status.Conditions)-1]
		return string(last.Type) + " " + last.Reason + " " + last.Message
	default:
		return ""
	}
}

func words(conditions []metav1.Condition) string {
	out := make([]string, len(conditions))
	for i, c := range conditions {
		out[i] = fmt.Sprintf("%s=%s(%s)", c.Type, c.Status, c.Reason)
	}
	return strings.Join(out, " ")
}
