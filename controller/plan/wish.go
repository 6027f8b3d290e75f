package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// wishKeys are the annotations that are copied to a PodGroup, in the order in which faults are reported.
func wishKeys() []string {
	var keys []string
	for _, line := range Annotations() {
		if line.wish {
			keys = append(keys, line.Key)
		}
	}
	return keys
}

// jobWish returns the wish of the TrainJob, else of the JobSet template, else of the runtime under a key. An empty
// value is a value: it overrides the runtime's.
func (d *draft) jobWish(key string) string {
	for _, layer := range []map[string]string{d.job.Annotations, d.annotations, d.runtime.Annotations} {
		if value, ok := layer[key]; ok {
			return value
		}
	}
	return ""
}

// wantsGang reports whether the job is a gang of Lockstep's: by its own annotation, else if its runtime groups its
// pods, else by the default.
func (d *draft) wantsGang(options Options) bool {
	value := d.jobWish(topology.AnnotationGang)
	switch {
	case foreignPolicy(d.runtime) != nil:
		return false
	case value == "":
		return options.Gang || d.runtime.Spec.Scheduling != nil
	}
	return value == gangOn
}

// wishes are the scheduling annotations of a gang: the runtime's, overridden by its JobSet template's, by its members'
// pod templates' and by the TrainJob's. Members must not contradict each other, nor the constraint of the runtime's
// scheduling, which stands where theirs stand.
func (d *draft) wishes(
	members []member, rules trainerv1alpha1.GroupScheduling,
) (map[string]string, field.ErrorList) {
	wishes := map[string]string{}
	var faults field.ErrorList
	for _, key := range wishKeys() {
		value, ok := d.job.Annotations[key]
		if !ok {
			var fault *field.Error
			value, ok, fault = podWish(members, key)
			if constraint := constraintOf(
				rules,
			); constraint != "" && key == topology.AnnotationRequiredTopology &&
				fault == nil {
				value, ok, fault = constraint, true, contradiction(constraint, value)
			}
			if fault != nil {
				faults = append(faults, fault)
				continue
			}
		}
		if !ok {
			value = d.jobWish(key)
		}
		if value != "" {
			wishes[key] = value
		}
	}
	return wishes, append(faults, checkWishes(wishes)...)
}

// contradiction is the fault of pod templates that require another topology than the constraint of their group; nil if
// they require none.
func contradiction(constraint, value string) *field.Error {
	if value == "" || value == constraint {
		return nil
	}
	return field.Invalid(runtimePath(), value, fmt.Sprintf(
		"annotation %s of its pods differs from the %s in schedulingConstraints of its scheduling",
		topology.AnnotationRequiredTopology, constraint))
}

// podWish returns the wish of the members' pod templates under a key.
func podWish(members []member, key string) (value string, ok bool, fault *field.Error) {
	first := ""
	for _, m := range members {
		own, has := m.template.Annotations[key]
		if !has {
			own, has = kueueWish(m.template, key)
		}
		switch {
		case !has:
		case !ok:
			value, ok, first = own, true, m.name
		case own != value:
			return "", false, field.Invalid(runtimePath(), own, fmt.Sprintf(
				"replicated jobs %s and %s of one gang differ in annotation %s: %q and %q",
				first, m.name, key, value, own))
		}
	}
	return value, ok, nil
}

// checkWishes checks the values of a gang's annotations, from whichever object they are, and names the key of each
// fault.
func checkWishes(wishes map[string]string) field.ErrorList {
	var faults field.ErrorList
	for _, key := range wishKeys() {
		value, ok := wishes[key]
		if !ok {
			continue
		}
		faults = append(faults, faultOf(key, value)...)
	}
	for _, pair := range [][2]string{
		{topology.AnnotationSegmentSize, topology.AnnotationSegmentTopology},
		{topology.AnnotationSegmentTopology, topology.AnnotationSegmentSize},
		{topology.AnnotationSegmentEqual, topology.AnnotationSegmentSize},
		{topology.AnnotationSpreadMax, topology.AnnotationSpreadTopology},
		{topology.AnnotationSpreadTopology, topology.AnnotationSpreadMax},
	} {
		if _, needed := wishes[pair[0]]; needed && wishes[pair[1]] == "" {
			faults = append(faults, field.Required(annotationPath(pair[1]), "needed by "+pair[0]))
		}
	}
	return faults
}

// checkSwitches checks the annotations that select the job's scheduling, and the reaction to its failures, unless they
// are wishes, which checkWishes checks.
func (d *draft) checkSwitches() field.ErrorList {
	var faults field.ErrorList
	for _, line := range slices.Concat(switchAnnotations(), failureAnnotations()) {
		if value := d.jobWish(line.Key); value != "" && !line.wish {
			faults = append(faults, faultOf(line.Key, value)...)
		}
	}
	return faults
}

// faultOf names the key of a value that the table does not allow.
func faultOf(key, value string) field.ErrorList {
	line, _ := annotation(key)
	if problem := line.Fault(value); problem != "" {
		return field.ErrorList{field.Invalid(annotationPath(key), value, problem)}
	}
	return nil
}

// scheduler is the name that pods without one get; empty for the stock scheduler.
func (d *draft) scheduler() string {
	value := d.jobWish(topology.AnnotationScheduler)
	switch name := cmp.Or(value, "lockstep"); name {
	case "lockstep":
		return lockstepScheduler
	case "native":
		return ""
	default:
		return name
	}
}

func annotationPath(key string) *field.Path {
	return field.NewPath("metadata", "annotations").Key(key)
}

func runtimePath() *field.Path {
	return field.NewPath("spec", "runtimeRef")
}

// one returns the only value that members have in common, or a fault that names two that differ.
func one(members []member, what string, value func(corev1.PodSpec) string) (string, *field.Error) {
	names := map[string]string{}
	for _, m := range members {
		own := value(m.template.Spec)
		if _, ok := names[own]; !ok {
			names[own] = m.name
		}
	}
	if len(names) < 2 {
		for own := range names {
			return own, nil
		}
		return "", nil
	}
	values := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(names[a], names[b]) })
	return "", field.Invalid(runtimePath(), values[1], fmt.Sprintf(
		"all members of a gang must have the same %s, but replicated job %s has %q and %s has %q",
		what, names[values[0]], values[0], names[values[1]], values[1]))
}
