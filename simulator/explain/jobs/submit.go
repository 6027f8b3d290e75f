package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/fleet"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
)

type replicatedJob = jobsetv1alpha2.ReplicatedJob

// labelQueue makes a job wait for Kueue.
const labelQueue = "kueue.x-k8s.io/queue-name"

// Submitted is a job that was submitted in thought.
type Submitted struct {
	Name types.NamespacedName
	// Groups are its gangs, with their members.
	Groups []Group
	// Devices are the claims, classes and templates of its files, and the template of its ComputeDomain.
	Devices whatif.Devices
	// Notes are the assumptions.
	Notes []string
}

// Group is a gang and its members, but for the late ones, which it announces.
type Group struct {
	PodGroup *schedulingv1beta1.PodGroup
	Members  []*corev1.Pod
}

// Submit renders the TrainJobs of a workload as if they were created now: with the webhooks' defaults and refusals, by
// the runtimes of the workload and of the cluster. A refused job is bad input, with the place in the file.
func (c *Cluster) Submit(ctx context.Context, w workload.Workload, now time.Time) ([]Submitted, error) {
	var came whatif.Devices
	for _, object := range w.Objects {
		if err := c.addObject(object, &came); err != nil {
			return nil, err
		}
	}
	var jobs []Submitted
	for _, object := range w.TrainJobs() {
		job, err := c.submit(ctx, object, now)
		if err != nil {
			return nil, err
		}
		job.Devices.Classes, job.Devices.Claims = came.Classes, came.Claims
		job.Devices.Templates = append(job.Devices.Templates, came.Templates...)
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// addObject adds a runtime or a PriorityClass of a file, or the objects by which pods claim devices. Other objects do
// not change an answer.
func (c *Cluster) addObject(object workload.Object, came *whatif.Devices) error {
	var err error
	switch kind := object.Object.GetKind(); kind {
	case trainerv1alpha1.TrainingRuntimeKind:
		var r trainerv1alpha1.TrainingRuntime
		if err = into(object.Object, &r); err == nil {
			c.add(kind, &r.ObjectMeta, r.Spec)
		}
	case trainerv1alpha1.ClusterTrainingRuntimeKind:
		var r trainerv1alpha1.ClusterTrainingRuntime
		if err = into(object.Object, &r); err == nil {
			c.add(kind, &r.ObjectMeta, r.Spec)
		}
	case "PriorityClass":
		var class schedulingv1.PriorityClass
		if err = into(object.Object, &class); err == nil {
			c.snapshot.PriorityClasses = append(c.snapshot.PriorityClasses, &class)
		}
	case "DeviceClass":
		came.Classes, err = with(came.Classes, object.Object)
	case "ResourceClaim":
		if came.Claims, err = with(came.Claims, inNamespace(object.Object)); err == nil {
			setDefaults(&came.Claims[len(came.Claims)-1].Spec)
		}
	case "ResourceClaimTemplate":
		if came.Templates, err = with(came.Templates, inNamespace(object.Object)); err == nil {
			setDefaults(&came.Templates[len(came.Templates)-1].Spec.Spec)
		}
	}
	if err != nil {
		return &badinput.Error{
			Where: object.Where(),
			What:  object.String() + ": " + err.Error(),
			Mend:  "see kubectl explain",
		}
	}
	return nil
}

// inNamespace is an object in the namespace default, as a workload's jobs are, if it says none.
func inNamespace(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetNamespace() != "" {
		return object
	}
	there := object.DeepCopy()
	there.SetNamespace(metav1.NamespaceDefault)
	return there
}

// with adds an object of a file to others of its kind.
func with[T any](all []*T, object *unstructured.Unstructured) ([]*T, error) {
	var one T
	if err := into(object, &one); err != nil {
		return nil, err
	}
	return append(all, &one), nil
}

func into(from *unstructured.Unstructured, object any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, object); err != nil {
		return fmt.Errorf("it is no such object: %w", err)
	}
	return nil
}

// submit does the work of the API server, its webhooks and the controller.
func (c *Cluster) submit(ctx context.Context, object workload.Object, now time.Time) (Submitted, error) {
	refuse := func(err error, mend string) error {
		return &badinput.Error{Where: object.Where(), What: object.String() + " is refused: " + err.Error(), Mend: mend}
	}
	job, err := c.created(object.Object, now)
	if err != nil {
		return Submitted{}, refuse(err, "")
	}
	name := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	if c.Job(name) != nil {
		return Submitted{}, refuse(fmt.Errorf("the cluster has a TrainJob %s already", name), "give it another name")
	}
	validator := &admission.Validator{
		Runtimes: c,
		Live:     classes(c.snapshot.PriorityClasses),
		Offers:   c.fleet,
		Options:  c.options,
	}
	verdict, err := validator.Create(ctx, job)
	if err != nil {
		return Submitted{}, fmt.Errorf("judging %s: %w", object, err)
	}
	if verdict.Refusal != nil {
		return Submitted{}, refuse(verdict.Refusal, "")
	}
	planned, err := c.Plan(job)
	if err != nil {
		return Submitted{}, refuse(err, "")
	}
	out := Submitted{Name: name, Notes: append(notes(job), verdict.Warnings...)}
	if planned.ComputeDomain != nil {
		template, err := channelTemplate(job)
		if err != nil {
			return Submitted{}, err
		}
		out.Devices.Templates = append(out.Devices.Templates, template)
	}
	for _, group := range planned.PodGroups {
		g, err := c.start(group, planned.JobSet, now)
		if err != nil {
			return Submitted{}, refuse(err, "")
		}
		out.Groups = append(out.Groups, g)
	}
	return out, nil
}

// fleet holds the GPUs of the nodes of the snapshot.
func (c *Cluster) fleet() sizing.Fleet { return fleet.Value(c.snapshot.Nodes) }

// created is the job as it would be stored.
func (c *Cluster) created(object *unstructured.Unstructured, now time.Time) (*trainerv1alpha1.TrainJob, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("printing it: %w", err)
	}
	job := &trainerv1alpha1.TrainJob{}
	if err := json.Unmarshal(text, job); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	if on, err := c.runtime(job); err == nil { // else the job is refused
		if text, err = admission.Fill(text, on, c.fleet()); err != nil {
			return nil, fmt.Errorf("filling in its resources: %w", err)
		}
	}
	if text, err = admission.Default(nil, text, now); err != nil {
		return nil, fmt.Errorf("defaulting it: %w", err)
	}
	*job = trainerv1alpha1.TrainJob{}
	if err := json.Unmarshal(text, job); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	job.CreationTimestamp, job.UID = metav1.NewTime(now), types.UID(job.Namespace+"/"+job.Name)
	return job, nil
}

// notes returns the assumptions of the answer about a job.
func notes(job *trainerv1alpha1.TrainJob) []string {
	var notes []string
	if queue := job.Labels[labelQueue]; queue != "" {
		notes = append(
			notes,
			fmt.Sprintf(
				"%s/%s would wait for Kueue's admission in queue %s first; the answer is for when it is admitted",
				job.Namespace,
				job.Name,
				queue,
			),
		)
	} else if job.Spec.Suspend != nil && *job.Spec.Suspend {
		notes = append(
			notes,
			fmt.Sprintf("%s/%s is suspended; the answer is for when it is resumed", job.Namespace, job.Name),
		)
	}
	return notes
}

// start makes the members of a group that start with it, as JobSet and Job make them.
func (c *Cluster) start(
	group *schedulingv1beta1.PodGroup,
	jobSet *jobsetv1alpha2.JobSet,
	now time.Time,
) (Group, error) {
	group = group.DeepCopy()
	group.CreationTimestamp, group.UID = metav1.NewTime(now), types.UID(group.Namespace+"/"+group.Name)
	class, err := c.class(group.Spec.PriorityClassName)
	if err != nil {
		return Group{}, err
	}
	group.Spec.Priority = class.priority
	late, err := lateJobs(group)
	if err != nil {
		return Group{}, err
	}
	out := Group{PodGroup: group}
	for _, replicated := range jobSet.Spec.ReplicatedJobs {
		if plan.GroupOf(&replicated) != group.Name || late[replicated.Name] {
			continue
		}
		for _, pod := range pods(jobSet, replicated) {
			pod.CreationTimestamp = metav1.NewTime(now)
			pod.Spec.Priority, pod.Spec.PreemptionPolicy = class.priority, class.preempts
			out.Members = append(out.Members, pod)
		}
	}
	return out, nil
}
