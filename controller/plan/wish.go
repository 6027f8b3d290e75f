package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/topology"
)

// The values of the gang annotation.
const (
	gangOn  = "on"
	gangOff = "off"
)

// wishKeys are the annotations that are copied to a PodGroup, in the order in which faults are reported.
func wishKeys() []string {
	return []string{
		topology.AnnotationRequiredTopology,
		topology.AnnotationPreferredTopology,
		topology.AnnotationSegmentSize,
		topology.AnnotationSegmentTopology,
		topology.AnnotationSegmentEqual,
		topology.AnnotationSpreadTopology,
		topology.AnnotationSpreadMax,
		topology.AnnotationSpares,
		topology.AnnotationMaxPerNode,
		topology.AnnotationCommunication,
	}
}

// IsWish reports whether a PodGroup's annotation is one that a plan copies from users' annotations.
func IsWish(key string) bool { return slices.Contains(wishKeys(), key) }

// jobWish is what the TrainJob, else the JobSet template, else the runtime says under a key. An empty value is a value:
// it takes back what the runtime says.
func (d *draft) jobWish(key string) string {
	for _, layer := range []map[string]string{d.job.Annotations, d.annotations, d.runtime.Annotations} {
		if value, ok := layer[key]; ok {
			return value
		}
	}
	return ""
}

// wantsGang reports whether the job is a gang.
func (d *draft) wantsGang(options Options) bool {
	value := d.jobWish(topology.AnnotationGang)
	if value == "" {
		return options.Gang
	}
	return value == gangOn
}

// wishes are the scheduling annotations of a gang: the runtime's, overridden by its JobSet template's, by its members'
// pod templates' and by the TrainJob's. Members must not contradict each other.
func (d *draft) wishes(members []member) (map[string]string, field.ErrorList) {
	wishes := map[string]string{}
	var faults field.ErrorList
	for _, key := range wishKeys() {
		value, ok := d.job.Annotations[key]
		if !ok {
			var fault *field.Error
			if value, ok, fault = podWish(members, key); fault != nil {
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

// podWish is what the members' pod templates say under a key.
func podWish(members []member, key string) (value string, ok bool, fault *field.Error) {
	first := ""
	for _, m := range members {
		own, has := m.template.Annotations[key]
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

// checkWishes checks the values of a gang's annotations, whoever wrote them, and names the key of each fault.
func checkWishes(wishes map[string]string) field.ErrorList {
	var faults field.ErrorList
	for _, key := range wishKeys() {
		value, ok := wishes[key]
		if !ok {
			continue
		}
		if problem := checkWish(key, value); problem != "" {
			faults = append(faults, field.Invalid(annotationPath(key), value, problem))
		}
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

// checkWish says what is wrong with a value; empty if nothing is.
func checkWish(key, value string) string {
	switch key {
	case topology.AnnotationSegmentSize, topology.AnnotationSpreadMax, topology.AnnotationMaxPerNode:
		return checkInteger(value, 1)
	case topology.AnnotationSpares:
		return checkInteger(value, 0)
	case topology.AnnotationSegmentEqual:
		return checkWord(value, "true", "false")
	case topology.AnnotationCommunication:
		return checkWord(value, "ring", "chain", "all-to-all")
	default: // a level or a node label
		return strings.Join(validation.IsQualifiedName(value), "; ")
	}
}

func checkInteger(value string, least int64) string {
	if number, err := strconv.ParseInt(value, 10, 32); err != nil || number < least {
		return fmt.Sprintf("must be an integer of at least %d", least)
	}
	return ""
}

func checkWord(value string, words ...string) string {
	if slices.Contains(words, value) {
		return ""
	}
	return "must be one of " + strings.Join(words, ", ")
}

// checkSwitches checks the annotations that decide whether a job is a gang, and whose.
func (d *draft) checkSwitches() field.ErrorList {
	var faults field.ErrorList
	if value := d.jobWish(topology.AnnotationGang); value != "" {
		if problem := checkWord(value, gangOn, gangOff); problem != "" {
			faults = append(faults, field.Invalid(annotationPath(topology.AnnotationGang), value, problem))
		}
	}
	if value := d.jobWish(topology.AnnotationScheduler); value != "" {
		if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
			faults = append(faults, field.Invalid(annotationPath(topology.AnnotationScheduler), value,
				strings.Join(problems, "; ")))
		}
	}
	return faults
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
