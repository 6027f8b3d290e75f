package guard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/controller/guard"
)

// answers returns a client of an API server that answers creates with these errors, by "RESOURCE in NAMESPACE".
func answers(by map[string]error) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made := action.(clienttesting.CreateAction).GetObject()
		name := action.GetResource().Resource + " in " + action.GetNamespace()
		return true, made, by[name]
	})
	return client
}

// denied returns the refusal of a policy.
func denied(policy string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "lockstep-guard",
		fmt.Errorf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: only controllers", policy, policy))
}

// What keeps a policy from being tested, such as a role that lacks a right, is no finding: an administrator who is told that a
// policy does nothing would look in the wrong place.
func TestVerify_TellsFaultsFromFindings(t *testing.T) {
	const own, other = "configmaps in lockstep-system", "configmaps in default"
	right := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
		errors.New(`User "system:serviceaccount:lockstep-system:lockstep-guard" cannot create resource`))
	owners, belongings := denied("trainjobowners.lockstep.dev"), denied("belongings.lockstep.dev")
	for name, c := range map[string]struct {
		stranger, controller map[string]error
		open                 bool
		want                 string
	}{
		"all hold":           {map[string]error{own: owners}, map[string]error{other: belongings}, false, ""},
		"one does nothing":   {nil, map[string]error{other: belongings}, true, "a tenant can write that a ConfigMap belongs to a TrainJob despite"},
		"another does":       {map[string]error{own: owners}, nil, true, "the controller can write any ConfigMap despite"},
		"groups are open":    {map[string]error{own: owners}, map[string]error{other: belongings}, true, "without a TrainJob despite"},
		"it keeps us out":    {map[string]error{own: owners}, map[string]error{own: owners, other: belongings}, true, "refuses the controller itself"},
		"a right is missing": {map[string]error{own: right}, nil, false, "cannot create resource"},
		"another refuses":    {map[string]error{own: denied("somebody.example")}, nil, false, "somebody.example"},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard.Guard{
				Stranger: answers(c.stranger), Controller: answers(c.controller), Namespace: "lockstep-system",
				PodGroups: name == "groups are open",
			}
			err := g.Verify(t.Context())
			if errors.Is(err, guard.ErrOpen) != c.open || (err == nil) != (c.want == "") ||
				!strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v; a finding %t, want %t and %q", err, errors.Is(err, guard.ErrOpen), c.open, c.want)
			}
		})
	}
}
