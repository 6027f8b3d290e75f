package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// ValidateAnnotations says what is wrong with the annotations of a runtime or of a template in one, whatever job uses it:
// keys that do not exist, and values that no job could have. What one needs another for is not asked, because the job may
// bring it. metadata is the place of the object's metadata.
func ValidateAnnotations(annotations map[string]string, metadata *field.Path) field.ErrorList {
	d := &draft{job: &trainerv1alpha1.TrainJob{}, runtime: Runtime{Annotations: annotations}}
	faults := slices.Concat(d.checkSwitches(), d.checkKeys())
	for _, line := range Annotations() {
		if value := annotations[line.Key]; value != "" && (line.wish || line.derived) {
			faults = append(faults, faultOf(line.Key, value)...)
		}
	}
	for _, fault := range faults {
		// The checks speak of a job's metadata.
		fault.Field = metadata.String() + strings.TrimPrefix(fault.Field, "metadata")
	}
	return faults
}
