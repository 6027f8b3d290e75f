package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
)

// Cluster is the part of a snapshot about jobs.
type Cluster struct {
	snapshot capture.Snapshot
	runtimes map[string]plan.Runtime // by reference
	options  plan.Options
}

// NewCluster reads a snapshot.
func NewCluster(snapshot capture.Snapshot) *Cluster {
	c := &Cluster{snapshot: snapshot, runtimes: make(map[string]plan.Runtime)}
	for _, r := range snapshot.TrainingRuntimes {
		c.add(trainerv1alpha1.TrainingRuntimeKind, &r.ObjectMeta, r.Spec)
	}
	for _, r := range snapshot.ClusterTrainingRuntimes {
		c.add(trainerv1alpha1.ClusterTrainingRuntimeKind, &r.ObjectMeta, r.Spec)
	}
	// The PodGroup fields that the API server stores change nothing here: the scheduler reads annotations.
	c.options = plan.Options{Gang: true, KeepsConstraints: true, KeepsClaims: true}
	c.options.Gang = c.makesGangs()
	return c
}

// makesGangs is the controller's --gang-default, as its work shows it: a job with pods and without an annotation of its
// own has a gang, or it has none. Without such a job, gangs are taken to be on.
func (c *Cluster) makesGangs() bool {
	off := c.options
	off.Gang = false
	for _, job := range c.snapshot.TrainJobs {
		known, err := c.runtime(job)
		pods := c.pods(job)
		if err != nil || len(pods) == 0 {
			continue
		}
		with, err := plan.New(job, known, c.options)
		if err != nil {
			continue
		}
		without, err := plan.New(job, known, off)
		if err == nil && len(with.PodGroups) > 0 && len(without.PodGroups) == 0 {
			return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.SchedulingGroup != nil })
		}
	}
	return true
}

// pods are those of a job that have not ended.
func (c *Cluster) pods(job *trainerv1alpha1.TrainJob) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.snapshot.Pods {
		if pod.Namespace == job.Namespace && pod.Labels[jobsetv1alpha2.JobSetNameKey] == job.Name &&
			pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			pods = append(pods, pod)
		}
	}
	return pods
}

// add makes a runtime known, in the place of an older one of its name.
func (c *Cluster) add(kind string, meta metav1.Object, spec trainerv1alpha1.TrainingRuntimeSpec) {
	ref := resolve.Reference{
		Group: trainerv1alpha1.Group, Kind: kind,
		Key: types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()},
	}
	c.runtimes[ref.String()] = plan.Runtime{
		Kind: kind, Name: meta.GetName(), Annotations: meta.GetAnnotations(), Spec: spec,
	}
}

// Job is the TrainJob of that name, nil if there is none.
func (c *Cluster) Job(name types.NamespacedName) *trainerv1alpha1.TrainJob {
	for _, job := range c.snapshot.TrainJobs {
		if job.Namespace == name.Namespace && job.Name == name.Name {
			return job
		}
	}
	return nil
}

// Names are all TrainJobs.
func (c *Cluster) Names() []types.NamespacedName {
	var names []types.NamespacedName
	for _, job := range c.snapshot.TrainJobs {
		names = append(names, types.NamespacedName{Namespace: job.Namespace, Name: job.Name})
	}
	return names
}

// Groups are the PodGroups of a TrainJob, by name. One that has ended has none that matter: they are deleted within a
// minute.
func (c *Cluster) Groups(job *trainerv1alpha1.TrainJob) []*schedulingv1beta1.PodGroup {
	if job.Ended() {
		return nil
	}
	var groups []*schedulingv1beta1.PodGroup
	for _, group := range c.snapshot.PodGroups {
		if owner := jobOf(group); owner != nil && owner.Name == job.Name && group.Namespace == job.Namespace {
			groups = append(groups, group)
		}
	}
	slices.SortFunc(groups, func(a, b *schedulingv1beta1.PodGroup) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}

// Owner is the TrainJob of a PodGroup, nil if none of the snapshot owns it.
func (c *Cluster) Owner(group types.NamespacedName) *trainerv1alpha1.TrainJob {
	for _, g := range c.snapshot.PodGroups {
		if owner := jobOf(g); owner != nil && g.Namespace == group.Namespace && g.Name == group.Name {
			return c.Job(types.NamespacedName{Namespace: g.Namespace, Name: owner.Name})
		}
	}
	return nil
}

// open are the PodGroups whose jobs have not ended.
func (c *Cluster) open() []*schedulingv1beta1.PodGroup {
	ended := make(map[types.NamespacedName]bool)
	for _, job := range c.snapshot.TrainJobs {
		ended[types.NamespacedName{Namespace: job.Namespace, Name: job.Name}] = job.Ended()
	}
	return slices.DeleteFunc(slices.Clone(c.snapshot.PodGroups), func(g *schedulingv1beta1.PodGroup) bool {
		owner := jobOf(g)
		return owner != nil && ended[types.NamespacedName{Namespace: g.Namespace, Name: owner.Name}]
	})
}

func jobOf(object metav1.Object) *metav1.OwnerReference {
	return ownership.ControllerOf(object, plan.TrainJobKind())
}

// Objects returns the objects of the cluster that package whatif reads.
func (c *Cluster) Objects() whatif.Objects {
	s := c.snapshot
	o := whatif.Objects{
		Nodes: s.Nodes, Pods: s.Pods, PodGroups: c.open(), Budgets: s.PodDisruptionBudgets,
		PriorityClasses: s.PriorityClasses,
		Replaces:        make(map[types.NamespacedName]bool),
		Devices: whatif.Devices{
			Slices: s.ResourceSlices, Classes: s.DeviceClasses, Claims: s.ResourceClaims,
			Templates: s.ResourceClaimTemplates,
		},
	}
	for _, job := range s.TrainJobs {
		groups := c.Groups(job)
		if len(groups) == 0 {
			continue
		}
		planned, err := c.Plan(job)
		if err != nil {
			continue // it runs all the same; that all of it starts again is the default
		}
		for _, group := range groups {
			o.Replaces[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}] = replaces(planned)
		}
	}
	return o
}

// Plan returns the controller's plan of a job. The error is a refusal of the planner's, or that there is no such
// runtime.
func (c *Cluster) Plan(job *trainerv1alpha1.TrainJob) (plan.Plan, error) {
	known, err := c.runtime(job)
	if err != nil {
		return plan.Plan{}, err
	}
	planned, err := plan.New(job, known, c.options)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("TrainJob %s/%s: %w", job.Namespace, job.Name, err)
	}
	return planned, nil
}

// replaces reports whether an evicted member is recreated alone.
func replaces(planned plan.Plan) bool {
	return slices.ContainsFunc(planned.JobSet.Spec.ReplicatedJobs, func(r replicatedJob) bool {
		policy := r.Template.Spec.PodFailurePolicy
		return plan.GroupOf(&r) != "" && policy != nil &&
			slices.ContainsFunc(policy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
				return rule.Action == batchv1.PodFailurePolicyActionIgnore &&
					slices.ContainsFunc(
						rule.OnPodConditions,
						func(p batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
							return p.Type == corev1.DisruptionTarget
						},
					)
			})
	})
}

// runtime is that of a job.
func (c *Cluster) runtime(job *trainerv1alpha1.TrainJob) (plan.Runtime, error) {
	ref := resolve.ReferenceOf(job)
	kinds := []string{trainerv1alpha1.TrainingRuntimeKind, trainerv1alpha1.ClusterTrainingRuntimeKind}
	if ref.Group != trainerv1alpha1.Group || !slices.Contains(kinds, ref.Kind) {
		return plan.Runtime{}, fmt.Errorf("%w: %s.%s", resolve.ErrUnknown, ref.Kind, ref.Group)
	}
	known, ok := c.runtimes[ref.String()]
	if !ok {
		return plan.Runtime{}, fmt.Errorf("%s %s: %w", ref.Kind, ref.Key.Name, resolve.ErrMissing)
	}
	return known, nil
}

// Runtime reports whether there is a runtime; a ClusterTrainingRuntime is in no namespace.
func (c *Cluster) Runtime(kind, namespace, name string) bool {
	_, ok := c.runtimes[resolve.Reference{
		Group: trainerv1alpha1.Group, Kind: kind, Key: types.NamespacedName{Namespace: namespace, Name: name},
	}.String()]
	return ok
}

// RuntimeNames are all runtimes, by name.
func (c *Cluster) RuntimeNames() []string {
	var names []string
	for _, r := range c.runtimes {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Current is the runtime of a job, as webhooks ask for it.
func (c *Cluster) Current(_ context.Context, job *trainerv1alpha1.TrainJob) (resolve.Found, error) {
	known, err := c.runtime(job)
	return resolve.Found{Runtime: known}, err
}

// Find is Current: the copies for running jobs are ConfigMaps, and those are in no snapshot.
func (c *Cluster) Find(ctx context.Context, job *trainerv1alpha1.TrainJob) (resolve.Found, error) {
	return c.Current(ctx, job)
}

// classes reads PriorityClasses for the webhook.
type classes []*schedulingv1.PriorityClass

// Get reads a PriorityClass.
func (c classes) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	target, ok := into.(*schedulingv1.PriorityClass)
	if !ok {
		return errOther
	}
	for _, class := range c {
		if class.Name == key.Name {
			class.DeepCopyInto(target)
			return nil
		}
	}
	return fmt.Errorf("in the snapshot: %w", apierrors.NewNotFound(schedulingv1.Resource("priorityclasses"), key.Name))
}

// List has nothing to list.
func (classes) List(context.Context, client.ObjectList, ...client.ListOption) error { return errOther }

var errOther = errors.New("only PriorityClasses can be read here")
