package testcluster

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience returns how long a loaded machine may take for what a good one does in this time at most. It costs nothing
// where it is not needed.
func Patience(good time.Duration) time.Duration {
	const slowest = 4
	return slowest * good
}

// Within fails the test unless the condition holds in time: in the time that a good machine needs at most, and on a
// loaded one within Patience. In a cleanup it waits too, although the test's context has ended.
func Within(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, Patience(patience), true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s did not come: %v", what, err)
	}
}
