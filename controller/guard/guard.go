// Package guard tests the admission policies of the chart by dry runs that they must refuse or admit.
//
// A policy that is missing, unbound, or rendered for another namespace or account does nothing, and no other check
// shows that. So the controller tests all of them when it starts: as itself, and as an account that has rights in the
// controller's namespace and is not a controller.
package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/controller/lease"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// Account is the ServiceAccount, in the controller's namespace, as which the policies are tried that refuse all users
// except controllers.
const Account = "lockstep-guard"

// ErrOpen indicates that a policy does nothing, or refuses the controller itself. The text names the policy and the
// attempted request.
var ErrOpen = errors.New("an admission policy does not hold")

// Guard tests the policies of one installation.
type Guard struct {
	// Controller and Stranger are clients as the controller and as Account, with the PodGroups of API.
	Controller, Stranger kubernetes.Interface
	// API is the API of the gangs.
	API gangapi.API
	// Namespace is the controller's.
	Namespace string
	// Namespaces are those that the controller serves; empty for all.
	Namespaces []string
	// Patience bounds the time from the first test to the last, for policies that were just applied; 0 tests once.
	Patience time.Duration
}

// retry separates two tests.
const retry = 500 * time.Millisecond

// Verify tests all policies until they hold or Patience has passed. The error is an ErrOpen, or a fault that prevented
// the test of a policy.
func (g Guard) Verify(ctx context.Context) error {
	var last error
	tries := wait.Backoff{Duration: retry, Factor: 1, Steps: int(g.Patience/retry) + 1}
	err := wait.ExponentialBackoffWithContext(ctx, tries, func(ctx context.Context) (bool, error) {
		last = g.once(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("testing the admission policies: %w", ctx.Err())
	}
	return last
}

// trial is one dry run and its expected result.
type trial struct {
	// policy is the ValidatingAdmissionPolicy that decides.
	policy string
	// what is a clause on the request that succeeds if the policy admits it.
	what string
	// refused reports that the policy must refuse it; otherwise the policy must let it pass.
	refused bool
	try     func(ctx context.Context) error
}

func (g Guard) once(ctx context.Context) error {
	made, err := g.makesClass(ctx)
	if err != nil {
		return err
	}
	trials := g.trials()
	if made {
		trials = append(trials, g.classTrial())
	}
	for _, t := range trials {
		err := t.try(ctx)
		denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'"+t.policy+"'")
		switch {
		case err != nil && !denied:
			return fmt.Errorf("testing whether %s despite ValidatingAdmissionPolicy %s: %w", t.what, t.policy, err)
		case t.refused && !denied:
			return fmt.Errorf("%w: %s despite ValidatingAdmissionPolicy %s", ErrOpen, t.what, t.policy)
		case !t.refused && denied:
			return fmt.Errorf(
				"%w: ValidatingAdmissionPolicy %s refuses the controller itself: %w",
				ErrOpen,
				t.policy,
				err,
			)
		}
	}
	return nil
}

// The policies of manifests/chart/templates.
const (
	gangTimes           = "gangtimes.lockstep.dev"
	trainJobOwners      = "trainjobowners.lockstep.dev"
	belongings          = "belongings.lockstep.dev"
	gangPriorities      = "gangpriorities.lockstep.dev"
	trainerLeases       = "trainerleases.lockstep.dev"
	componentPriorities = "componentpriorities.lockstep.dev"
	systemPriorities    = "systempriorities.lockstep.dev"
)

// class is the PriorityClass that the chart makes for its own pods. It has partOf as any object of the chart.
const (
	class       = "lockstep"
	labelPartOf = "app.kubernetes.io/part-of"
	partOf      = "lockstep"
)

// makesClass reports whether the chart makes class. With another priorityClassName it makes neither the class nor its
// policy, and a class of that name is the administrator's.
func (g Guard) makesClass(ctx context.Context) (bool, error) {
	found, err := g.Controller.SchedulingV1().PriorityClasses().Get(ctx, class, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting PriorityClass %s: %w", class, err)
	}
	return found.Labels[labelPartOf] == partOf, nil
}

// classTrial is a gang of class. The policy refuses it as it refuses pods, but in every namespace, so that the trial
// needs no right to create pods and no namespace of a tenant.
func (g Guard) classTrial() trial {
	const what = "a tenant can give gangs and pods PriorityClass " + class + ", which is before all others,"
	named := func(group *schedulingv1beta1.PodGroup) { group.Spec.PriorityClassName = class }
	return trial{componentPriorities, what, true, createGroup(g.Stranger, g.Namespace, named)}
}

func (g Guard) trials() []trial {
	claimed := config(g.Namespace, "lockstep-guard", owner("trainer.kubeflow.org/v1alpha1", "TrainJob"))
	copied := config(g.Namespace, "lockstep-guard-runtime-snapshot", owner("example.com/v1", "Nothing"))
	const (
		claim = "a tenant can write that a ConfigMap belongs to a TrainJob"
		times = "a tenant can set lockstep.dev/queued-at on a PodGroup"
	)
	trials := []trial{
		{trainJobOwners, claim, true, create(g.Stranger, claimed)},
		{trainJobOwners, "a tenant can make a copy of a runtime for an unknown kind", true, create(g.Stranger, copied)},
		{trainJobOwners, "the controller can write its own objects", false, create(g.Controller, claimed)},
	}
	if outside := g.outside(); outside != g.Namespace { // in its own it may
		unclaimed := create(g.Controller, config(outside, "lockstep-guard"))
		// In place of a JobSet, which is in the same clause of the policy: JobSet's webhooks answer before a policy
		// does, and a controller that starts before them would take their silence for a fault.
		unowned := createGroup(g.Controller, outside, func(*schedulingv1beta1.PodGroup) {})
		trials = append(
			trials,
			trial{belongings, "the controller can write any ConfigMap", true, unclaimed},
			trial{belongings, "the controller can create a PodGroup, or a JobSet, without a TrainJob", true, unowned},
		)
	}
	const stop = "a tenant can hold lease " + lease.Trainer + ", which stops the controller,"
	trials = append(
		trials,
		trial{trainerLeases, stop, true, createLease(g.Stranger, g.Namespace)},
		trial{trainerLeases, "the controller can take over that lease", false, createLease(g.Controller, g.Namespace)},
		trial{gangTimes, times, true, createGroup(g.Stranger, g.Namespace, queued)},
		trial{
			gangTimes,
			"the controller can set lockstep.dev/queued-at on a PodGroup",
			false,
			createGroup(g.Controller, g.Namespace, queued),
		},
	)
	if g.API != gangapi.Resources {
		return trials
	}
	// The API server refuses both for native groups.
	important := func(group *schedulingv1beta1.PodGroup) { group.Spec.Priority = new(int32(1)) }
	critical := func(group *schedulingv1beta1.PodGroup) { group.Spec.PriorityClassName = "system-cluster-critical" }
	const before = "a tenant can give gangs PriorityClass system-cluster-critical, which is before all others,"
	return append(
		trials,
		trial{
			gangPriorities,
			"a tenant can set the priority of a PodGroup",
			true,
			createGroup(g.Stranger, g.Namespace, important),
		},
		trial{systemPriorities, before, true, createGroup(g.Stranger, g.Namespace, critical)},
	)
}

// queued gives a group a time of waiting.
func queued(group *schedulingv1beta1.PodGroup) {
	group.Annotations = map[string]string{topology.AnnotationQueuedAt: "2020-01-01T00:00:00Z"}
}

// outside is a namespace in which the controller has its rights and that is not its own, or its own if it serves no
// other.
func (g Guard) outside() string {
	served := g.Namespaces
	if len(served) == 0 {
		served = []string{metav1.NamespaceDefault, metav1.NamespaceSystem} // every cluster has them
	}
	for _, namespace := range served {
		if namespace != g.Namespace {
			return namespace
		}
	}
	return g.Namespace
}

func dryRun() metav1.CreateOptions { return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

// owner is a reference to an object that does not exist, as its controller.
func owner(apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: "lockstep-guard", UID: "00000000-0000-0000-0000-000000000000",
		Controller: new(true),
	}
}

func config(namespace, name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}}
}

func create(client kubernetes.Interface, config *corev1.ConfigMap) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(config.Namespace).Create(ctx, config, dryRun())
		return err //nolint:wrapcheck // the caller adds the context
	}
}

func createGroup(
	client kubernetes.Interface, namespace string, change func(*schedulingv1beta1.PodGroup),
) func(context.Context) error {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lockstep-guard"},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1},
		}},
	}
	change(group)
	return func(ctx context.Context) error {
		_, err := client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, dryRun())
		return err //nolint:wrapcheck // the caller adds the context
	}
}

// createLease creates the lease of a Kubeflow Trainer. Where there is one, admission precedes the search for it: an
// answer that the lease exists means that the policies let the request pass.
func createLease(client kubernetes.Interface, namespace string) func(context.Context) error {
	made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease.Trainer}}
	return func(ctx context.Context) error {
		_, err := client.CoordinationV1().Leases(namespace).Create(ctx, made, dryRun())
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err //nolint:wrapcheck // the caller adds the context
	}
}
