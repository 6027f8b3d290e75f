package faults

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	lockstep "github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
	"github.com/lockstep-project/lockstep/topology"
)

// jobOfPod is the name of the scene's job that a pod is of; "" for none.
func jobOfPod(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[jobsetv1alpha2.JobSetNameKey], pod.Labels[batchv1.JobNameLabel])
}

// createNative creates the objects of a user without TrainJobs: a PodGroup, and a Job whose pods are in it.
func (w *world) createNative(j Job) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: j.Name, Annotations: map[string]string{}}
	if j.Rack {
		meta.Annotations[topology.AnnotationRequiredTopology] = rackLabel
	}
	group := &schedulingv1beta1.PodGroup{ObjectMeta: meta}
	size := int32(j.Nodes) //nolint:gosec // a scene has a few nodes
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: size}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SchedulerName: lockstep.ProfileName, RestartPolicy: corev1.RestartPolicyNever,
		SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &meta.Name},
		Containers:      []corev1.Container{gpuContainer(j.GPUs)},
	}}
	if w.scene.Claims {
		claim(&pod.Spec, j.GPUs)
	}
	if j.Priority > 0 {
		group.Spec.PriorityClassName, pod.Spec.PriorityClassName = high, high
	}
	w.create(group)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: j.Name}, Spec: batchv1.JobSpec{
		Parallelism: &size, Completions: &size, CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimit: new(int32(plenty)), Suspend: new(false), Template: pod,
	}}
	if j.GivesUp {
		job.Spec.BackoffLimitPerIndex = new(int32(0))
	}
	w.create(job)
}

// plenty is the number of ranks that a native Job may lose.
const plenty = 1000

// native returns the Job of a native job, nil for none.
func (w *world) native(name string) *batchv1.Job {
	found, err := w.server.Get("Job", types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil
	}
	job, _ := found.(*batchv1.Job)
	return job
}

// changeNative changes the Job of a native job unless it is over, and reports whether it did.
func (w *world) changeNative(name string, change func(*batchv1.JobSpec)) bool {
	job := w.native(name)
	if job == nil || fakecluster.Has(job, batchv1.JobComplete) || fakecluster.Has(job, batchv1.JobFailed) {
		return false
	}
	next := job.DeepCopy()
	change(&next.Spec)
	_, err := w.server.Update(next, "")
	w.must(err)
	return true
}

func (w *world) suspendNative(name string, suspended bool) {
	w.changeNative(name, func(of *batchv1.JobSpec) { of.Suspend = &suspended })
}

// scale gives a native job another number of ranks, and its group the same.
func (w *world) scale(name string, ranks int) {
	size := int32(ranks) //nolint:gosec // a scene has a few nodes
	if !w.changeNative(name, func(of *batchv1.JobSpec) { of.Parallelism, of.Completions = &size, &size }) {
		return
	}
	w.work.scale(name, ranks)
	found, err := w.server.Get("PodGroup", types.NamespacedName{Namespace: namespace, Name: name})
	group, ok := found.(*schedulingv1beta1.PodGroup)
	if err != nil || !ok {
		return
	}
	next := group.DeepCopy()
	next.Spec.SchedulingPolicy.Gang.MinCount = size
	_, err = w.server.Update(next, "")
	w.must(err)
}

// deleteNative deletes a native job and its group, as far as they are there.
func (w *world) deleteNative(name string) {
	for _, kind := range []string{"Job", "PodGroup"} {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if _, err := w.server.Get(kind, key); err == nil {
			w.must(w.server.Delete(kind, key, metav1.DeleteOptions{}))
		}
	}
}

func gpuContainer(gpus int) corev1.Container {
	asks := corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	return corev1.Container{
		Name: "node", Image: "example.com/node:1",
		Resources: corev1.ResourceRequirements{Limits: asks, Requests: asks},
	}
}

// thief has default-scheduler bind a pod, if it sees free GPUs.
func (w *world) thief(f Fault, end func(func())) {
	name := w.scene.nodeName(f.Node)
	if w.scene.Claims { // two schedulers may give the same devices: the drivers have the last word
		return
	}
	if w.unused()[name] < f.GPUs {
		return
	}
	made, err := w.server.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "thief-"},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{gpuContainer(f.GPUs)},
		},
	})
	w.must(err)
	key := types.NamespacedName{Namespace: namespace, Name: made.GetName()}
	w.after(w.chance.delay(callLag, "thief", name), func() {
		w.must(w.server.Bind(&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace,
				Name:      key.Name,
			},
			Target: corev1.ObjectReference{Name: name},
		}))
	})
	end(func() {
		if _, err := w.server.Get("Pod", key); err == nil {
			w.must(w.server.Delete("Pod", key, metav1.DeleteOptions{}))
		}
	})
}
