package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// lockstepScheduler is the schedulerName of Lockstep's scheduler.
	lockstepScheduler = "lockstep-scheduler"
	// gangTemplate is the name of the PodGroup template of a job that is one gang.
	gangTemplate = "gang"
)

// gang is the pods of one PodGroup, which start together unless its rules let them start one by one.
type gang struct {
	// name is that of the PodGroup, template that of its template in the Workload.
	name, template string
	// rules are those of the runtime's scheduling for it.
	rules trainerv1alpha1.GroupScheduling
	// members are the names of its ReplicatedJobs.
	members []string
	// count is the number of pods that must exist before any is placed. Late members are not counted.
	count         int32
	priorityClass string
	// scheduler is given to members without a schedulerName.
	scheduler   string
	annotations map[string]string
	// channels are the members whose pods get a channel of the job's ComputeDomain, if it has one.
	channels []string
	// faults are the reasons why the members cannot be one gang.
	faults field.ErrorList
}

// member is one ReplicatedJob of a gang.
type member struct {
	name     string
	template corev1.PodTemplateSpec
}

// newGang collects the members of a group and their common settings.
func (d *draft) newGang(ask asked, options Options) *gang {
	names, waits, count := d.together(ask.targets)
	g := &gang{
		name:      ask.name,
		template:  ask.template,
		rules:     ask.rules,
		scheduler: d.scheduler(),
		members:   names,
		count:     count,
	}
	members := slices.DeleteFunc(d.allMembers(), func(m member) bool { return !slices.Contains(names, m.name) })
	if g.count == 0 && !isBasic(g.rules) {
		g.faults = append(g.faults, field.Invalid(runtimePath(), d.runtime.Name,
			"no replicated job can start first: every one waits for another"))
		return g
	}
	g.faults = append(g.faults, ungrouped(members)...)
	var fault *field.Error
	g.priorityClass, fault = one(members, "priorityClassName", func(pod corev1.PodSpec) string {
		return pod.PriorityClassName
	})
	g.fault(fault)
	_, fault = one(members, "schedulerName", func(pod corev1.PodSpec) string {
		return cmp.Or(pod.SchedulerName, g.scheduler)
	})
	g.fault(fault)
	g.faults = append(g.faults, g.checkClaims(members, options)...)
	if options.sharesByName() {
		g.faults = append(g.faults, g.checkSharers(d.sharers(g))...)
	}
	if isBasic(g.rules) {
		g.faults = append(g.faults, g.checkBasic(members)...)
		return g
	}
	g.faults = append(g.faults, d.checkStart(members)...)
	wishes, faults := d.wishes(members, g.rules)
	maps.Copy(wishes, d.ofSpan(g))
	g.annotations, g.faults = wishes, append(g.faults, faults...)
	if d.nvlink != mnnvlNone {
		d.wishClique(g, members)
	}
	d.wishSlice(g, members)
	if text, fault := d.announce(waits); fault != nil {
		g.fault(fault)
	} else if text != "" {
		g.annotations = overlay(g.annotations, map[string]string{topology.AnnotationLateMembers: text})
	}
	return g
}

// together returns the ReplicatedJobs of one group, the indexes in the runtime of the late ones among them, and the
// number of pods that start first. Without targets it derives the group from the ReplicatedJobs.
func (d *draft) together(targets []string) (names []string, waits []int, count int32) {
	names = targets
	if names == nil {
		names = membership(d.spec)
	}
	late := lateAmong(d.spec, names)
	for i, replicated := range d.spec.ReplicatedJobs {
		switch {
		case !slices.Contains(names, replicated.Name):
		case slices.Contains(late, replicated.Name):
			waits = append(waits, i)
		default:
			count += d.pods(i) - d.lets(i)
		}
	}
	return names, waits, count
}

// pods is the number of pods of the ReplicatedJob at index i, over all its Jobs.
func (d *draft) pods(i int) int32 {
	return max(1, d.spec.ReplicatedJobs[i].Replicas) * d.podsPerJob(i)
}

// allMembers are all ReplicatedJobs.
func (d *draft) allMembers() []member {
	members := make([]member, len(d.spec.ReplicatedJobs))
	for i, replicated := range d.spec.ReplicatedJobs {
		members[i] = member{name: replicated.Name, template: replicated.Template.Spec.Template}
	}
	return members
}

func (g *gang) fault(fault *field.Error) {
	if fault != nil {
		g.faults = append(g.faults, fault)
	}
}

// checkGangs returns the faults of the job's groups. A fault of the job's own settings for all groups appears once.
func (d *draft) checkGangs() field.ErrorList {
	if len(d.gangs) == 0 {
		return nil
	}
	faults := d.exclusive()
	for _, g := range d.gangs {
		faults = append(faults, g.faults...)
		if first := d.gangs[0]; g.priorityClass != first.priorityClass {
			faults = append(faults, field.Invalid(runtimePath(), g.priorityClass, fmt.Sprintf(
				"groups %s and %s of one job must have the same priorityClassName, and the former has %q",
				first.template, g.template, first.priorityClass)))
		}
	}
	var distinct field.ErrorList
	for _, fault := range faults {
		if !slices.ContainsFunc(distinct, func(other *field.Error) bool { return other.Error() == fault.Error() }) {
			distinct = append(distinct, fault)
		}
	}
	return distinct
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

// ungrouped refuses pod templates that already belong to a group.
func ungrouped(members []member) field.ErrorList {
	var faults field.ErrorList
	for _, m := range members {
		switch {
		case m.template.Spec.SchedulingGroup != nil:
			faults = append(faults, field.Forbidden(runtimePath(),
				"replicated job "+m.name+" sets schedulingGroup, which a gang sets itself"))
		case m.template.Labels[gangapi.Label] != "":
			faults = append(faults, field.Forbidden(runtimePath(),
				"replicated job "+m.name+" sets label "+gangapi.Label+", which a gang sets itself"))
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
		pod := &spec.ReplicatedJobs[i].Template.Spec.Template
		gangapi.Join(&pod.ObjectMeta, &pod.Spec, g.name)
		pod.Spec.SchedulerName = cmp.Or(pod.Spec.SchedulerName, g.scheduler)
	}
}
