package trainjob

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// IsTooLarge reports whether the API server refused an object because of its size: it refuses the same object tomorrow.
// Only a request above 3 MiB has that as its reason. Etcd's limit (1.5 MiB) and that of the client of etcd (2 MiB)
// arrive as a 500 without a reason, known by nothing but its text.
func IsTooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	text := answer.Status().Message
	return strings.Contains(text, "etcdserver: request is too large") ||
		strings.Contains(text, "trying to send message larger than max")
}

// tooLarge refuses a job whose runtime, with the frozen state around it, is too large for the API server.
func tooLarge(runtime string, refusal error) error {
	return &plan.RefusalError{
		Runtime: runtime,
		Faults: field.ErrorList{
			field.Forbidden(
				field.NewPath("spec", "runtimeRef"),
				"the job's copy of its runtime is larger than the API server takes ("+refusal.Error()+"); move files into a volume or an image",
			),
		},
	}
}
