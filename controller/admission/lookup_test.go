package admission_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestValidator_LookupFaultIsReturned(t *testing.T) {
	lost := errors.New("connection lost")
	validator := newValidator(t, finds{err: lost})
	if _, err := validator.Create(t.Context(), trainJob()); !errors.Is(err, lost) {
		t.Errorf("creation: %v, want that the connection was lost", err)
	}
	if _, err := validator.Update(t.Context(), trainJob(), trainJob(noNodes)); !errors.Is(err, lost) {
		t.Errorf("an update: %v, want that the connection was lost", err)
	}
	if _, err := validator.Update(t.Context(), trainJob(running), trainJob(suspended)); err != nil {
		t.Errorf("suspension: %v, want none", err)
	}
	validator = newValidator(t, there(t))
	validator.JobSets = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return lost
		},
	})
	got, err := validator.Update(t.Context(), trainJob(suspended), trainJob(suspended, patchedBy("a.io/b", "node")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, "spec.runtimePatches: Internal error: getting JobSet train: connection lost", "")
}
