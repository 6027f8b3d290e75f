package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// rights answers reviews of the controller itself. It has all rights except those that denied matches.
func rights(denied func(*authorizationv1.ResourceAttributes) bool) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor(
		"create",
		"selfsubjectaccessreviews",
		func(action kubetesting.Action) (bool, runtime.Object, error) {
			review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
			review.Status.Allowed = !denied(review.Spec.ResourceAttributes)
			return true, review, nil
		},
	)
	return client
}

// The administrator of a namespace can delete the controller's Role there; the controller still works elsewhere.
func TestReachable(t *testing.T) {
	t.Parallel()
	in := func(namespaces ...string) func(*authorizationv1.ResourceAttributes) bool {
		return func(asked *authorizationv1.ResourceAttributes) bool {
			return slices.Contains(namespaces, asked.Namespace)
		}
	}
	for name, c := range map[string]struct {
		denied       func(*authorizationv1.ResourceAttributes) bool
		served, lost []string
	}{
		"all":      {denied: in(), served: []string{"a", "b", "c"}},
		"but one":  {denied: in("a"), served: []string{"b", "c"}, lost: []string{"a"}},
		"but none": {denied: in("a", "b", "c"), lost: []string{"a", "b", "c"}},
		"but one right in one": {denied: func(asked *authorizationv1.ResourceAttributes) bool {
			return asked.Namespace == "b" && asked.Resource == "podgroups" && asked.Verb == "watch"
		}, served: []string{"a", "c"}, lost: []string{"b"}},
	} {
		served, lost, err := controller.Reachable(
			t.Context(),
			rights(c.denied),
			[]string{"a", "b", "c"},
			gangapi.Native,
		)
		if !slices.Equal(served, c.served) || !slices.Equal(lost, c.lost) {
			t.Errorf("%s: serves %v and lost %v, want %v and %v", name, served, lost, c.served, c.lost)
		}
		if none := errors.Is(err, controller.ErrNoNamespace); none != (len(c.served) == 0) || err != nil && !none {
			t.Errorf("%s: %v", name, err)
		}
	}
	everywhere, lost, err := controller.Reachable(t.Context(), rights(in("")), nil, gangapi.Native)
	if len(everywhere)+len(lost) > 0 || err != nil {
		t.Errorf("a controller of all namespaces serves %v and lost %v (%v)", everywhere, lost, err)
	}
}

// Restored rights are used, but not at once: an administrator that removes and restores them must not cause constant
// restarts.
func TestRegain_StartsAnewAfterAWhile(t *testing.T) {
	t.Parallel()
	denied := true
	client := rights(func(*authorizationv1.ResourceAttributes) bool { return denied })
	clock := clocktesting.NewFakeClock(noon())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- controller.NewRegain(client, clock, "a").Start(ctx) }()
	for !clock.HasWaiters() {
	}
	clock.Step(controller.RegainPause - 1)
	if len(client.Actions()) > 0 {
		t.Error("it asked before its time")
	}
	denied = false
	clock.Step(1)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("it ended with %v, want namespace a", err)
	}
}
