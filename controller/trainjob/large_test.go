package trainjob_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// refusedForSize has the API server's answers to objects above each of the limits on the way to etcd, as a real one
// gives them (TestFrozenTrainJob_TooLargeIsRecognized).
func refusedForSize() map[string]error {
	unexplained := func(text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: text,
		}}
	}
	return map[string]error{
		"of etcd": unexplained("etcdserver: request is too large"),
		"of its client": unexplained("rpc error: code = ResourceExhausted desc = " +
			"trying to send message larger than max (2200710 vs. 2097152)"),
		"of a request": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	}
}

// The API server's refusal of a large object is final: the job is blocked with a reason, and is not retried.
func TestReconcile_ObjectsThatAreTooLarge(t *testing.T) {
	for kind, says := range map[string]string{
		"FrozenTrainJob": "spec.runtimeRef: Forbidden: the job's copy of its runtime is larger than the API server takes",
		"JobSet":         "applying JobSet",
	} {
		for limit, answer := range refusedForSize() {
			t.Run(kind+" above the limit "+limit, func(t *testing.T) {
				w := newFixture(t, gang(), torch(), trainJob())
				w.unstored = map[string]error{kind: answer}
				if _, err := w.reconcile(); !errors.Is(err, reconcile.TerminalError(nil)) {
					t.Errorf("the error %v is tried again", err)
				}
				said := w.job().Status.Scheduling
				if said == nil || said.Phase != trainerv1alpha1.PhaseBlocked || !strings.Contains(said.Reason, says) {
					t.Errorf("the job says %+v", said)
				}
			})
		}
	}
}

// Any other failure of the API server may be transient.
func TestIsTooLarge_OtherFailures(t *testing.T) {
	for _, err := range []error{
		nil,
		errors.New("etcdserver: request is too large"),                       // not an answer of the API server's
		apierrors.NewInternalError(errors.New("etcdserver: leader changed")), // in etcd's words
		apierrors.NewTooManyRequests("later", 1),
	} {
		if trainjob.IsTooLarge(err) {
			t.Errorf("%v is taken for a refusal because of size", err)
		}
	}
}
