package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// asked is one group that a job is to have.
type asked struct {
	// name is that of the PodGroup, template that of its template in the Workload.
	name, template string
	// targets are its ReplicatedJobs; nil for all that start together.
	targets []string
	// rules are those of the runtime for it.
	rules trainerv1alpha1.GroupScheduling
}

// asks returns the groups that the job is to have, none for a job that is no gang: one for all pods that start
// together, or those that the runtime's scheduling lists, each named after the first of its ReplicatedJobs.
func (d *draft) asks(options Options) []asked {
	if !d.wantsGang(options) {
		return nil
	}
	whole := asked{name: d.job.Name, template: gangTemplate}
	scheduling := d.runtime.Spec.Scheduling
	if scheduling == nil {
		return []asked{whole}
	}
	var groups []asked
	for _, entry := range scheduling.ReplicatedJobs {
		if len(entry.TargetReplicatedJobs) == 0 {
			continue // the schema lets none in
		}
		first := entry.TargetReplicatedJobs[0]
		groups = append(groups, asked{
			name:     d.job.Name + "-" + first,
			template: first,
			targets:  entry.TargetReplicatedJobs,
			rules:    entry.GroupScheduling,
		})
	}
	if len(groups) == 0 {
		whole.rules = scheduling.GroupScheduling
		return []asked{whole}
	}
	return groups
}

// allRules returns a runtime's rules for all of its groups.
func allRules(scheduling *trainerv1alpha1.Scheduling) []trainerv1alpha1.GroupScheduling {
	rules := []trainerv1alpha1.GroupScheduling{scheduling.GroupScheduling}
	for _, entry := range scheduling.ReplicatedJobs {
		rules = append(rules, entry.GroupScheduling)
	}
	return rules
}

// isBasic reports whether the pods of a group start one by one.
func isBasic(rules trainerv1alpha1.GroupScheduling) bool {
	return rules.SchedulingPolicy != nil && rules.SchedulingPolicy.Basic != nil
}

// constraintOf returns the node label whose value a group's pods must share; empty for none.
func constraintOf(rules trainerv1alpha1.GroupScheduling) string {
	if rules.SchedulingConstraints == nil || len(rules.SchedulingConstraints.Topology) == 0 {
		return ""
	}
	return rules.SchedulingConstraints.Topology[0].Key
}

// checkScheduling refuses a runtime's scheduling that contradicts other settings, or that names missing ReplicatedJobs.
func (d *draft) checkScheduling() field.ErrorList {
	scheduling := d.runtime.Spec.Scheduling
	if scheduling == nil {
		return nil
	}
	var faults field.ErrorList
	if foreignPolicy(d.runtime) != nil {
		faults = append(faults, field.Invalid(runtimePath(), d.runtime.Name,
			"has both scheduling and podGroupPolicy, and a pod is in one group; leave one out"))
	}
	if fault := d.checkOff(scheduling); fault != nil {
		faults = append(faults, fault)
	}
	faults = append(faults, d.checkTargets(scheduling)...)
	faults = append(faults, ungrouped(d.allMembers())...)
	for _, replicated := range d.spec.ReplicatedJobs {
		if replicated.Template.Spec.Scheduling != nil {
			faults = append(faults, field.Forbidden(runtimePath(),
				"replicated job "+replicated.Name+" has scheduling of its own beside the runtime's; leave one out"))
		}
	}
	for _, rules := range allRules(scheduling) {
		if key := constraintOf(rules); key != "" && len(validation.IsQualifiedName(key)) > 0 {
			faults = append(faults, field.Invalid(runtimePath(), key,
				"schedulingConstraints.topology of its scheduling must be the key of a node label"))
		}
	}
	return faults
}

// checkOff lets a job switch off the gang that its runtime would make of it, unless the pods could then be where the
// runtime rules it out, or would each get devices of their own. A runtime with both makes no sense.
func (d *draft) checkOff(scheduling *trainerv1alpha1.Scheduling) *field.Error {
	if d.jobWish(topology.AnnotationGang) != gangOff {
		return nil
	}
	if _, ok := d.job.Annotations[topology.AnnotationGang]; !ok {
		return field.Invalid(runtimePath(), d.runtime.Name,
			"has scheduling, and its annotation "+topology.AnnotationGang+" is off; leave one out")
	}
	for _, rules := range allRules(scheduling) {
		if rules.SchedulingConstraints != nil || len(rules.ResourceClaims) > 0 {
			return field.Invalid(
				annotationPath(topology.AnnotationGang),
				gangOff,
				"the scheduling of runtime "+d.runtime.Name+" has constraints or claims, which only a group can have; leave it out",
			)
		}
	}
	return nil
}

// checkTargets wants each ReplicatedJob that is named to exist, and to be in one group.
func (d *draft) checkTargets(scheduling *trainerv1alpha1.Scheduling) field.ErrorList {
	var faults field.ErrorList
	seen := map[string]bool{}
	for _, entry := range scheduling.ReplicatedJobs {
		for _, name := range entry.TargetReplicatedJobs {
			switch {
			case position(d.spec.ReplicatedJobs, name) < 0:
				faults = append(faults, field.Invalid(runtimePath(), name, fmt.Sprintf(
					"its scheduling names a replicated job that it has not; there are %s",
					strings.Join(d.names(), ", "),
				)))
			case seen[name]:
				faults = append(faults, field.Invalid(runtimePath(), name,
					"its scheduling names the replicated job twice, and a pod is in one group"))
			}
			seen[name] = true
		}
	}
	return faults
}

// names are the names of all ReplicatedJobs.
func (d *draft) names() []string {
	names := make([]string, len(d.spec.ReplicatedJobs))
	for i, replicated := range d.spec.ReplicatedJobs {
		names[i] = replicated.Name
	}
	return names
}
