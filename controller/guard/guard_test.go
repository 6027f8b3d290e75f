package guard_test

import (
	"errors"
	"fmt"
	"maps"
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

// A fault that prevents the test of a policy, such as a role that lacks a right, is no finding: a report that the
// policy does nothing would mislead the administrator.
func TestVerify_TellsFaultsFromFindings(t *testing.T) {
	const own, other = "configmaps in lockstep-system", "configmaps in default"
	right := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
		errors.New(`User "system:serviceaccount:lockstep-system:lockstep-guard" cannot create resource`))
	owners, belongings := denied("trainjobowners.lockstep.dev"), denied("belongings.lockstep.dev")
	const groups, elsewhere = "podgroups in lockstep-system", "podgroups in default"
	// held returns the refusals where all policies hold, but for some of them.
	held := func(refusals map[string]error, without ...string) map[string]error {
		kept := maps.Clone(refusals)
		for _, what := range without {
			delete(kept, what)
		}
		return kept
	}
	stranger := map[string]error{own: owners, groups: denied("gangtimes.lockstep.dev")}
	controller := map[string]error{other: belongings, elsewhere: belongings}
	for name, c := range map[string]struct {
		stranger, controller map[string]error
		open                 bool
		want                 string
	}{
		"all hold":           {stranger, controller, false, ""},
		"one does nothing":   {held(stranger, own), controller, true, "a tenant can write that a ConfigMap belongs to a TrainJob despite"},
		"another does":       {stranger, held(controller, other), true, "the controller can write any ConfigMap despite"},
		"groups are open":    {stranger, held(controller, elsewhere), true, "without a TrainJob despite"},
		"times are open":     {held(stranger, groups), controller, true, "a tenant can set lockstep.dev/queued-at on a PodGroup despite"},
		"it keeps us out":    {stranger, map[string]error{own: owners, other: belongings, elsewhere: belongings}, true, "refuses the controller itself"},
		"a right is missing": {map[string]error{own: right}, nil, false, "cannot create resource"},
		"another refuses":    {map[string]error{own: denied("somebody.example")}, nil, false, "somebody.example"},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard.Guard{
				Stranger: answers(c.stranger), Controller: answers(c.controller), Namespace: "lockstep-system",
			}
			err := g.Verify(t.Context())
			if errors.Is(err, guard.ErrOpen) != c.open || (err == nil) != (c.want == "") ||
				!strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v; a finding %t, want %t and %q", err, errors.Is(err, guard.ErrOpen), c.open, c.want)
			}
		})
	}
}
