package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/controller/framework"
)

const (
	// maxPods is the largest number of pods of a job. Hostfiles and announcements are written pod by pod, and a gang is
	// counted in 32 bits: without a bound, one TrainJob takes all of the controller's memory.
	maxPods = 100_000
	// maxLate is the largest number of late members of a gang, and maxAnnounced that of bytes of the announcement of
	// all of them: the API server takes 256 KiB of annotations, and the others need some of it.
	maxLate, maxAnnounced = 900, 240 << 10
)

// tooMany refuses a job with more pods than that, nil if it has not.
func tooMany(runtime Runtime, roles []framework.Role) error {
	var pods int64
	for _, role := range roles {
		pods += int64(role.Replicas) * int64(role.Pods)
		if pods > maxPods { // the sum of all roles may not fit in 64 bits
			break
		}
	}
	if pods <= maxPods {
		return nil
	}
	return &RefusalError{Runtime: runtime.Name, Faults: field.ErrorList{
		field.Invalid(
			runtimePath(),
			runtime.Name,
			fmt.Sprintf("the job would have at least %d pods with it; there may be %d", pods, maxPods),
		),
	}}
}

// tooLate refuses a gang with more late members than can be announced, nil if it has not.
func (d *draft) tooLate(late []int) *field.Error {
	var pods int64
	for _, i := range late {
		pods += int64(max(1, d.spec.ReplicatedJobs[i].Replicas)) * int64(d.podsPerJob(i))
		if pods > maxLate {
			break
		}
	}
	if pods <= maxLate {
		return nil
	}
	return field.Invalid(runtimePath(), d.runtime.Name, fmt.Sprintf(
		"at least %d pods would wait until others of the gang are ready; places can be held for %d", pods, maxLate))
}
