package testcluster

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// slowest multiplies the patience of the tests, which was chosen on good machines. It costs nothing where it is not
// needed.
const slowest = 4

// Within fails the test unless the condition holds in time: in the time that a good machine needs at most, and on a
// loaded one four times that.
func Within(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, slowest*patience, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s did not come: %v", what, err)
	}
}
