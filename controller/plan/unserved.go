package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// prefix is that of all annotations that are Lockstep's own.
const prefix = "lockstep.dev/"

// checkUnserved refuses requests without effect: an annotation that does not exist, resources that were to be filled in
// and were not, and a hard wish that gets lost with the gang off or at a scheduler that cannot read it. A job that
// started without would be in a place that its owner ruled out, without a report.
func (d *draft) checkUnserved(options Options) field.ErrorList {
	faults := append(d.checkKeys(), d.checkFilled()...)
	slices.SortFunc(faults, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	for _, line := range Annotations() {
		key, value := line.Key, d.anyWish(line.Key)
		if value == "" || !line.hard {
			continue
		}
		// All that the stock scheduler reads is one node label in the native field.
		native := key == topology.AnnotationRequiredTopology && strings.Contains(value, "/") && options.KeepsConstraints
		switch {
		case len(d.gangs) == 0:
			faults = append(faults, field.Invalid(annotationPath(key), value,
				"needs a gang, and "+topology.AnnotationGang+" is off for this job"))
		case !slices.ContainsFunc(d.gangs, func(g *gang) bool { return !isBasic(g.rules) }):
			faults = append(faults, field.Invalid(annotationPath(key), value,
				"needs a gang, and the scheduling of runtime "+d.runtime.Name+" has policy basic"))
		case d.scheduler() == "" && !native:
			faults = append(faults, field.Invalid(annotationPath(key), value,
				"the native scheduler does not serve it; leave "+topology.AnnotationScheduler+" out"))
		}
	}
	return append(faults, d.checkNative(options)...)
}

// checkNative refuses a gang for the stock scheduler where that reads no PodGroups, and a runtime's constraint where
// the API server drops the field that it reads.
func (d *draft) checkNative(options Options) field.ErrorList {
	var faults field.ErrorList
	if len(d.gangs) > 0 && d.scheduler() == "" && options.GangAPI == gangapi.Resources {
		return field.ErrorList{field.Invalid(annotationPath(topology.AnnotationScheduler), "native",
			"the stock scheduler does not read the PodGroups of this cluster ("+options.GangAPI.Version().String()+
				"); leave the annotation out, or set "+topology.AnnotationGang+": off")}
	}
	for _, g := range d.gangs {
		key := constraintOf(g.rules)
		if d.scheduler() == "" && key != "" && g.annotations[topology.AnnotationRequiredTopology] == key &&
			!options.KeepsConstraints {
			faults = append(faults, field.Invalid(
				annotationPath(topology.AnnotationScheduler),
				"native",
				"the runtime's schedulingConstraints need the gate TopologyAwareWorkloadScheduling for the native scheduler, and the API "+
					"server has it off; leave the annotation out",
			))
		}
	}
	return faults
}

// anyWish returns the first wish under a key: of the job, else of a pod template, else of the JobSet template or the
// runtime.
func (d *draft) anyWish(key string) string {
	if value, ok := d.job.Annotations[key]; ok {
		return value
	}
	for _, replicated := range d.spec.ReplicatedJobs {
		if value, ok := replicated.Template.Spec.Template.Annotations[key]; ok {
			return value
		}
	}
	return d.jobWish(key)
}

// checkKeys refuses annotations with our prefix that are none of ours, most likely misspelled, and those that only the
// controller writes.
func (d *draft) checkKeys() field.ErrorList {
	known, own := map[string]bool{}, map[string]bool{}
	for _, line := range Annotations() {
		onJobs := slices.ContainsFunc(line.On, func(object string) bool {
			return object == onTrainJob || object == onPods || object == onRuntime
		})
		known[line.Key], own[line.Key] = !line.Controller && onJobs, line.Controller
	}
	maps.DeleteFunc(known, func(_ string, users bool) bool { return !users })
	layers := []map[string]string{d.job.Annotations, d.annotations, d.runtime.Annotations}
	for _, replicated := range d.spec.ReplicatedJobs {
		layers = append(layers, replicated.Template.Spec.Template.Annotations)
	}
	said := map[string]string{}
	for _, layer := range slices.Backward(layers) {
		maps.Copy(said, layer)
	}
	var faults field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(said)) {
		switch {
		case !strings.HasPrefix(key, prefix) || known[key]:
		case own[key]:
			faults = append(faults, field.Invalid(annotationPath(key), said[key], "only the controller writes it"))
		default:
			faults = append(faults, field.Invalid(annotationPath(key), said[key],
				"there is no such annotation; there are "+strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
	}
	return faults
}
