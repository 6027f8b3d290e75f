package guard_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/controller/guard"
)

// answers returns a client of an API server that answers creates with these errors, by "RESOURCE in NAMESPACE", and
// for groups that name a PriorityClass by "classed RESOURCE in NAMESPACE".
func answers(by map[string]error, objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made := action.(clienttesting.CreateAction).GetObject()
		name := action.GetResource().Resource + " in " + action.GetNamespace()
		if group, ok := made.(*schedulingv1beta1.PodGroup); ok && group.Spec.PriorityClassName != "" {
			name = "classed " + name
		}
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
	const lease, keeps = "leases in lockstep-system", "trainerleases.lockstep.dev"
	const holds = "a tenant can hold lease trainer.kubeflow.org"
	leases := denied(keeps)
	// held returns the refusals where all policies hold, but for some of them.
	held := func(refusals map[string]error, without ...string) map[string]error {
		kept := maps.Clone(refusals)
		for _, what := range without {
			delete(kept, what)
		}
		return kept
	}
	// with returns the answers with another one.
	with := func(answers map[string]error, to string, answer error) map[string]error {
		changed := maps.Clone(answers)
		changed[to] = answer
		return changed
	}
	exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, "trainer.kubeflow.org")
	stranger := map[string]error{own: owners, groups: denied("gangtimes.lockstep.dev"), lease: leases}
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
		"leases are open":    {held(stranger, lease), controller, true, holds},
		"it has our lease":   {stranger, with(controller, lease, leases), true, keeps + " refuses the controller itself"},
		"the lease is there": {stranger, with(controller, lease, exists), false, ""},
		"it is there, open":  {with(stranger, lease, exists), controller, true, holds},
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

// The policy about the chart's PriorityClass is there if the class is: with another priorityClassName the chart makes
// neither, and the API server refuses a native group of a class that does not exist.
func TestVerify_TheClassOfTheChart(t *testing.T) {
	const policy, groups = "componentpriorities.lockstep.dev", "podgroups in lockstep-system"
	const open = "a tenant can give gangs and pods PriorityClass lockstep, which is before all others, despite"
	class := func(name, partOf string) *schedulingv1.PriorityClass {
		labels := map[string]string{"app.kubernetes.io/part-of": partOf}
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	unknown := apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "lockstep-guard",
		errors.New("no PriorityClass with name lockstep was found"))
	for name, c := range map[string]struct {
		class  *schedulingv1.PriorityClass
		answer error
		open   bool
		want   string
	}{
		"it holds":                   {class("lockstep", "lockstep"), denied(policy), false, ""},
		"it does nothing":            {class("lockstep", "lockstep"), nil, true, open},
		"it cannot be tested":        {class("lockstep", "lockstep"), unknown, false, "no PriorityClass with name"},
		"the chart makes no class":   {class("other", "lockstep"), unknown, false, ""},
		"an administrator makes one": {class("lockstep", "batch"), nil, false, ""},
	} {
		stranger := answers(map[string]error{
			"configmaps in lockstep-system": denied("trainjobowners.lockstep.dev"),
			"leases in lockstep-system":     denied("trainerleases.lockstep.dev"),
			groups:                          denied("gangtimes.lockstep.dev"),
			"classed " + groups:             c.answer,
		})
		belongings := denied("belongings.lockstep.dev")
		controller := answers(
			map[string]error{"configmaps in default": belongings, "podgroups in default": belongings}, c.class,
		)
		g := guard.Guard{Stranger: stranger, Controller: controller, Namespace: "lockstep-system"}
		err := g.Verify(t.Context())
		if errors.Is(err, guard.ErrOpen) != c.open || (err == nil) != (c.want == "") ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v; a finding %t, want %t and %q", name, err, errors.Is(err, guard.ErrOpen), c.open, c.want)
		}
	}
}
