package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/topology"
)

// prefix is that of all annotations that are Lockstep's own.
const prefix = "lockstep.dev/"

// checkUnserved refuses what nobody would serve: an annotation that does not exist, and a hard wish that gets lost with
// the gang off or at a scheduler that cannot read it. A job that started without would be in a place that its owner
// ruled out, and nobody would tell.
func (d *draft) checkUnserved(options Options) field.ErrorList {
	faults := d.checkKeys()
	if d.jobWish(topology.AnnotationMNNVL) == "required" {
		faults = append(faults, field.NotSupported(annotationPath(topology.AnnotationMNNVL), "required",
			[]string{"none", "preferred"}))
	}
	for _, line := range Annotations() {
		key, value := line.Key, d.jobWish(line.Key)
		if value == "" || !line.hard {
			continue
		}
		// All that the stock scheduler reads is one node label in the native field.
		native := key == topology.AnnotationRequiredTopology && strings.Contains(value, "/") && options.KeepsConstraints
		switch {
		case d.gang == nil:
			faults = append(faults, field.Forbidden(annotationPath(key),
				"needs a gang, and "+topology.AnnotationGang+" is off for this job"))
		case d.scheduler() == "" && !native:
			faults = append(faults, field.Forbidden(annotationPath(key),
				"the native scheduler does not serve it; leave "+topology.AnnotationScheduler+" out"))
		}
	}
	return faults
}

// checkKeys refuses annotations with our prefix that are none of ours: most likely one is misspelled.
func (d *draft) checkKeys() field.ErrorList {
	var known []string
	for _, line := range Annotations() {
		if !line.Controller {
			known = append(known, line.Key)
		}
	}
	slices.Sort(known)
	said := map[string]bool{}
	for _, layer := range []map[string]string{d.job.Annotations, d.annotations, d.runtime.Annotations} {
		for key := range layer {
			said[key] = true
		}
	}
	var faults field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if strings.HasPrefix(key, prefix) && !slices.Contains(known, key) {
			faults = append(faults, field.Forbidden(annotationPath(key),
				"there is no such annotation; there are "+strings.Join(known, ", ")))
		}
	}
	return faults
}
