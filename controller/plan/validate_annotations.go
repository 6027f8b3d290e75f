package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// ValidateAnnotations returns the faults in the annotations of a runtime or of a template in one, for any job that uses
// it: keys that do not exist, and values that no job could have. It does not check that an annotation has the others
// that it needs, because the job may have them. metadata is the path of the object's metadata.
func ValidateAnnotations(annotations map[string]string, metadata *field.Path) field.ErrorList {
	d := &draft{job: &trainerv1alpha1.TrainJob{}, runtime: Runtime{Annotations: annotations}}
	faults := slices.Concat(d.checkSwitches(), d.checkKeys())
	for _, line := range Annotations() {
		if value := annotations[line.Key]; value != "" && (line.wish || line.derived) {
			faults = append(faults, faultOf(line.Key, value)...)
		}
	}
	for _, fault := range faults {
		// The checks report paths in a job's metadata.
		fault.Field = metadata.String() + strings.TrimPrefix(fault.Field, "metadata")
	}
	return faults
}
