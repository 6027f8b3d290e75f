package waiting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// ErrRequest indicates that a gang's request cannot be read; the message names the fault.
var ErrRequest = errors.New("request")

// Reader reads gangs and the fleet as questions. It is not safe for concurrent use: the scheduling loop is its only
// caller.
type Reader struct {
	Indices *snapshot.Indices
	// Accelerators are the resources that count as accelerators.
	Accelerators []corev1.ResourceName
	// Stock knows the devices; nil for a cluster without.
	Stock *devices.Stock
	// Budgets lists the PodDisruptionBudgets.
	Budgets func() []*policyv1.PodDisruptionBudget
	// Protected reports whether an administrator has marked a PriorityClass as not to be preempted.
	Protected func(priorityClass string) bool
	// Groups finds the PodGroups of running units.
	Groups func() fwk.PodGroupLister
	// Version changes with the rules about evictions (see Queue.Version).
	Version func() int
	// Lives tells consumers of claims that are gone; nil takes all to be there.
	Lives devices.Lives
	// Learner predicts ends that are not declared; nil predicts none.
	Learner *runtimes.Learner

	limits snapshot.Budgets
}

// Asked is a gang, or a pod that is in none, and the nodes of the cycle.
type Asked struct {
	// Group is nil for a pod that is in no gang.
	Group            *schedulingv1beta1.PodGroup
	Waiting, Running []*corev1.Pod
	Nodes            []fwk.NodeInfo
	// Refused are nodes that are barred, each by a rule.
	Refused map[string]string
	// Spoken is room on nodes that others have a claim to.
	Spoken map[string]corev1.ResourceList
	Now    time.Time
}

// View brings the right index up to date: a required key that is no known level has one of its own. Accelerators are
// always counted.
func (r *Reader) View(a Asked) (snapshot.View, error) {
	pods, required := a.Waiting, ""
	if a.Group != nil {
		late, _ := snapshot.Late(a.Group, a.Waiting, a.Running) // its faults are reported when the gang is read
		pods, required = slices.Concat(a.Waiting, late), snapshot.Required(a.Group)
	}
	var served func(corev1.ResourceName) bool
	if r.Stock != nil {
		served = r.Stock.Serves
	}
	counted := r.Indices.Offered(a.Nodes, snapshot.Resources(pods), served)
	view, err := r.Indices.View(a.Nodes, slices.Concat(r.Accelerators, counted), required)
	if err != nil {
		return view, fmt.Errorf("planning on %d nodes: %w", len(a.Nodes), err)
	}
	return view, nil
}

// Read returns the question. The error wraps ErrRequest if it is about the gang's request.
func (r *Reader) Read(ctx context.Context, a Asked) (*Question, error) {
	view, err := r.View(a)
	if err != nil {
		return nil, err
	}
	x := &Question{Group: a.Group, Waiting: a.Waiting, Running: a.Running, View: view, Kinds: r.Accelerators}
	gang, err := view.Gang(groupOf(a), a.Waiting, a.Running, a.Refused)
	if err != nil {
		return x, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	x.Choices = []devices.Asked{devices.NewAsked(view.Ledger(a.Spoken), gang)}
	x.Accelerators = snapshot.Accelerators(a.Waiting, r.Accelerators)
	x.Protected = slices.ContainsFunc(
		a.Waiting, func(pod *corev1.Pod) bool { return r.protects(pod.Spec.PriorityClassName) })
	if r.Stock != nil && r.Stock.Claims(a.Waiting) {
		x.Accelerators += r.Stock.Wanted(a.Group, a.Waiting)
		x.Labels = r.Stock.NodeLabels()
		x.Choices, err = r.Stock.Ask(ctx, devices.Question{
			Nodes: a.Nodes, Group: a.Group, Waiting: a.Waiting, Ledger: view.Ledger(a.Spoken), Gang: gang,
			Resources: view.Resources(), Now: a.Now, Lives: r.Lives,
		})
		if errors.Is(err, devices.ErrClaims) {
			return x, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		if err != nil {
			return x, fmt.Errorf("devices of gang %s: %w", gang.Name, err)
		}
	}
	x.Fleet = func() Fleet { return r.fleet(ctx, view, x.Choices[0]) }
	return x, nil
}

// groupOf is the PodGroup of the gang; one that asks for nothing for a pod that is in none.
func groupOf(a Asked) *schedulingv1beta1.PodGroup {
	if a.Group != nil {
		return a.Group
	}
	return &schedulingv1beta1.PodGroup{}
}

func (r *Reader) protects(class string) bool {
	return r.Protected != nil && class != "" && r.Protected(class)
}

// fleet reads the running units, with the devices that they would give back to a question.
func (r *Reader) fleet(ctx context.Context, view snapshot.View, asked devices.Asked) Fleet {
	reading := r.reading()
	out := Fleet{Budgets: r.limits.Allowed()}
	if len(asked.Demands()) == 0 {
		out.Units = view.Contenders(r.Groups(), reading)
		return out
	}
	reading.Devices = nil // Holds counts them
	out.Units = &contention.Units{}
	for _, u := range r.Stock.Holds(ctx, asked, view.Units(r.Groups())) {
		out.Units.Add(u.Contender(reading))
	}
	return out
}

// reading returns the settings for reading units, as of the current budgets.
func (r *Reader) reading() snapshot.Reading {
	if r.Budgets != nil {
		r.limits.Update(r.Budgets())
	}
	out := snapshot.Reading{
		Accelerators: r.Accelerators, Protected: r.protects, Budgets: r.limits.Covered, BudgetVersion: r.limits.Version,
	}
	if r.Version != nil {
		out.Version = r.Version()
	}
	if r.Stock != nil {
		out.Devices = r.Stock.Held
	}
	if r.Learner != nil {
		out.Predicted = r.predicted
	}
	return out
}

// Room returns the ledger of the view without devices, for messages to users about the fleet.
func (x *Question) Room() topology.Ledger { return x.View.Ledger(nil) }
