package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// lockstepScheduler is the schedulerName of Lockstep's scheduler.
	lockstepScheduler = "lockstep-scheduler"
	// gangTemplate is the name of a Workload's only PodGroup template.
	gangTemplate = "gang"
)

// gang is the pods of a job that must start together.
type gang struct {
	name string
	// members are the names of its ReplicatedJobs.
	members []string
	// count is how many pods must be there before any is placed. Late members are not counted.
	count         int32
	priorityClass string
	// scheduler is given to members without a schedulerName.
	scheduler   string
	annotations map[string]string
	// faults say why the members cannot be one gang.
	faults field.ErrorList
}

// member is one ReplicatedJob of a gang.
type member struct {
	name     string
	template corev1.PodTemplateSpec
}

// newGang gathers the members of the job and what they have in common.
func (d *draft) newGang() *gang {
	names, waits, count := d.together()
	g := &gang{name: d.job.Name, scheduler: d.scheduler(), members: names, count: count}
	var members []member
	for _, replicated := range d.spec.ReplicatedJobs {
		if slices.Contains(names, replicated.Name) {
			members = append(members, member{name: replicated.Name, template: replicated.Template.Spec.Template})
		}
	}
	if g.count == 0 {
		g.faults = append(g.faults, field.Invalid(runtimePath(), d.runtime.Name,
			"no replicated job can start first: every one waits for another"))
		return g
	}
	g.faults = append(g.faults, d.exclusive()...)
	g.faults = append(g.faults, grouped(members)...)
	var fault *field.Error
	g.priorityClass, fault = one(members, "priorityClassName", func(pod corev1.PodSpec) string {
		return pod.PriorityClassName
	})
	g.fault(fault)
	_, fault = one(members, "schedulerName", func(pod corev1.PodSpec) string {
		return cmp.Or(pod.SchedulerName, g.scheduler)
	})
	g.fault(fault)
	wishes, faults := d.wishes(members)
	g.annotations, g.faults = wishes, append(g.faults, faults...)
	if text, fault := d.announce(waits); fault != nil {
		g.fault(fault)
	} else if text != "" {
		g.annotations = overlay(g.annotations, map[string]string{topology.AnnotationLateMembers: text})
	}
	return g
}

// together are the ReplicatedJobs whose pods belong together, the places in the runtime of those among them that come late, and
// the number of pods that start first.
func (d *draft) together() (names []string, waits []int, count int32) {
	names, late := membership(d.spec)
	for i, replicated := range d.spec.ReplicatedJobs {
		switch {
		case !slices.Contains(names, replicated.Name):
		case slices.Contains(late, replicated.Name):
			waits = append(waits, i)
		default:
			count += d.pods(i)
		}
	}
	return names, waits, count
}

// pods is the number of pods of the ReplicatedJob at index i, over all its Jobs.
func (d *draft) pods(i int) int32 {
	return max(1, d.spec.ReplicatedJobs[i].Replicas) * d.count(i)
}

func (g *gang) fault(fault *field.Error) {
	if fault != nil {
		g.faults = append(g.faults, fault)
	}
}

// exclusive refuses JobSet's own exclusive placement, which is built from node affinities that a gang cannot satisfy
// together.
func (d *draft) exclusive() field.ErrorList {
	layers := map[string]map[string]string{"the JobSet": d.annotations}
	order := []string{"the JobSet"}
	for _, replicated := range d.spec.ReplicatedJobs {
		where := "replicated job " + replicated.Name
		layers[where], order = replicated.Template.Annotations, append(order, where)
	}
	var faults field.ErrorList
	for _, where := range order {
		if _, ok := layers[where][jobsetv1alpha2.ExclusiveKey]; ok {
			faults = append(faults, field.Forbidden(runtimePath(), fmt.Sprintf(
				"annotation %s of %s cannot be used in a gang; use %s with %s instead",
				jobsetv1alpha2.ExclusiveKey,
				where,
				topology.AnnotationSegmentTopology,
				topology.AnnotationSegmentSize,
			)))
		}
	}
	return faults
}

// grouped refuses pod templates that already belong to a group.
func grouped(members []member) field.ErrorList {
	var faults field.ErrorList
	for _, m := range members {
		if m.template.Spec.SchedulingGroup != nil {
			faults = append(faults, field.Forbidden(runtimePath(),
				"replicated job "+m.name+" sets schedulingGroup, which a gang sets itself"))
		}
	}
	return faults
}

// join puts the members' pods into the group. A schedulerName that the runtime set stays.
func (g *gang) join(spec *jobsetv1alpha2.JobSetSpec) {
	for i := range spec.ReplicatedJobs {
		if !slices.Contains(g.members, spec.ReplicatedJobs[i].Name) {
			continue
		}
		pod := &spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		pod.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new(g.name)}
		pod.SchedulerName = cmp.Or(pod.SchedulerName, g.scheduler)
	}
}

// objects are the gang's Workload and PodGroup.
func (g *gang) objects(
	job *trainerv1alpha1.TrainJob, options Options,
) (*schedulingv1beta1.Workload, *schedulingv1beta1.PodGroup) {
	template := schedulingv1beta1.PodGroupTemplate{
		Name: gangTemplate,
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: g.count},
		},
		PriorityClassName: g.priorityClass,
	}
	// The native field knows node labels only, not the names of levels.
	required := g.annotations[topology.AnnotationRequiredTopology]
	if options.KeepsConstraints && strings.Contains(required, "/") {
		template.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: required}},
		}
	}
	meta := metav1.ObjectMeta{Name: g.name, Namespace: job.Namespace, OwnerReferences: Owners(job)}
	workload := &schedulingv1beta1.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Workload"},
		ObjectMeta: *meta.DeepCopy(),
		Spec: schedulingv1beta1.WorkloadSpec{
			ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{
				APIGroup: trainerv1alpha1.Group, Kind: trainerv1alpha1.TrainJobKind, Name: job.Name,
			},
			PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{template},
		},
	}
	meta.Annotations = overlay(g.annotations, timetable(job))
	group := &schedulingv1beta1.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: meta,
		Spec: schedulingv1beta1.PodGroupSpec{
			WorkloadRef: &schedulingv1beta1.WorkloadReference{
				WorkloadName: workload.Name, TemplateName: template.Name,
			},
			SchedulingPolicy:      *template.SchedulingPolicy.DeepCopy(),
			SchedulingConstraints: template.SchedulingConstraints.DeepCopy(),
			PriorityClassName:     template.PriorityClassName,
		},
	}
	return workload, group
}
