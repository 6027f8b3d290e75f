package dra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
)

// MostPods is what a Fit counts to: more pods than a node runs.
const MostPods = 256

// DefaultSteps is how many steps of its search the allocator may take for one pod on one node. What fits needs tens.
const DefaultSteps = 4096

// Fit says how many pods with one demand a node can still take.
type Fit struct {
	Pods int
	// Rule says what stops the next pod, "" if nothing does. It names no node and no device.
	Rule string
	// Unknown is set if the search was cut off: Pods is what was found, there may be room for more.
	Unknown bool
	// Wide is set if devices that the demand could use reach other nodes too: these nodes compete for them.
	Wide bool
}

// Fitter answers questions and remembers the answers. They do not depend on what was asked before.
type Fitter struct {
	allocator allocator
	compiled  *cel.Cache
	features  Features
	steps     int64

	devices, classes names
	// readings are what expressions read, lenses the different things that demands read.
	readings, lenses map[string]*lens
	looks            map[lookAt]look
	terms            map[string]*terms
	// asked is how many different terms there were.
	asked uint32
	fits  map[fitKey]Fit
	text  []byte
}

type fitKey struct {
	class class
	terms uint32
}

// NewFitter returns a fitter for a cluster with these features whose allocator may take so many steps for one pod on one
// node; 0 is DefaultSteps.
func NewFitter(features Features, steps int64) *Fitter {
	if steps <= 0 {
		steps = DefaultSteps
	}
	compiled := newCompiler(features)
	return &Fitter{
		allocator: &upstream{features, compiled},
		compiled:  compiled,
		features:  features,
		steps:     steps,
		devices:   names{numbers: map[string]uint32{}},
		classes:   names{numbers: map[string]uint32{}},
		readings:  map[string]*lens{},
		lenses:    map[string]*lens{},
		looks:     map[lookAt]look{},
		terms:     map[string]*terms{},
		fits:      map[fitKey]Fit{},
	}
}

// Fleet is what a question is about: what is published, and what is taken of it.
type Fleet struct {
	Inventory *Inventory
	Ledger    *Ledger
}

// Fit says how many pods with the demand the node can still take. The error is that of the context. A demand with a
// fault fits nowhere; without devices to ask for, everywhere.
func (f *Fitter) Fit(ctx context.Context, fleet Fleet, node string, d *Demand) (Fit, error) {
	if d.Fault != "" {
		return Fit{Rule: d.Fault}, nil
	}
	v := fleet.Inventory.view(node)
	if v == nil {
		return Fit{Rule: "the node is not known"}, nil
	}
	d = d.on(v.node)
	if len(d.Claims) == 0 {
		return Fit{Pods: MostPods}, nil
	}
	key := fitKey{f.classOf(v, fleet.Ledger, d.lens), d.number}
	fit, known := f.fits[key]
	if !known {
		var err error
		if fit, err = f.fit(ctx, v, fleet.Ledger, d.terms); err != nil {
			return Fit{}, err
		}
		remember(f.fits, key, fit)
	}
	// What is wrong with pools is told by the node: all that is remembered by class is that they give nothing.
	if problems := v.problems(); fit.Pods == 0 && len(problems) > 0 {
		fit.Rule += "; a resource pool of the node cannot be used: " + strings.Join(problems, "; ")
	}
	return fit, nil
}

// Classes returns how many kinds of nodes the demand can tell apart.
func (f *Fitter) Classes(fleet Fleet, d *Demand) int {
	seen := map[class]bool{}
	if d.Fault != "" {
		return 0
	}
	for _, name := range fleet.Inventory.Nodes() {
		v := fleet.Inventory.view(name)
		if on := d.on(v.node); on.terms != nil {
			seen[f.classOf(v, fleet.Ledger, on.lens)] = true
		}
	}
	return len(seen)
}

// fit gives the node one pod after another until the next one does not fit.
func (f *Fitter) fit(ctx context.Context, v *view, l *Ledger, t *terms) (Fit, error) {
	var fit Fit
	for l = l.Branch(); fit.Pods < MostPods; fit.Pods++ {
		rule, at := f.possible(ctx, v, l, t)
		fit.Wide = fit.Wide || at.wide()
		if rule != "" {
			fit.Rule = rule
			break
		}
		results, err := f.allocator.allocate(
			ctx,
			question{v.node, v.published(), v.state(l), t.classes, t.claims, f.steps},
		)
		if ctx.Err() != nil {
			return Fit{}, fmt.Errorf("find how many pods fit on node %s: %w", v.node.Name, context.Cause(ctx))
		}
		if results == nil {
			fit.Rule, fit.Unknown = at.refusal(ctx, err)
			break
		}
		if !takes(results) {
			fit.Pods = MostPods
			break
		}
		for i := range results {
			l.Assume(types.UID(fmt.Sprintf("pod %d claim %d", fit.Pods, i)), &results[i])
		}
	}
	return fit, nil
}

// takes reports whether an allocation takes anything away from others.
func takes(results []resourcev1.AllocationResult) bool {
	return slices.ContainsFunc(results, func(r resourcev1.AllocationResult) bool {
		return slices.ContainsFunc(r.Devices.Results, func(d resourcev1.DeviceRequestAllocationResult) bool {
			return d.AdminAccess == nil || !*d.AdminAccess
		})
	})
}

// wide reports whether a device that could be used reaches other nodes.
func (at *trial) wide() bool {
	return slices.ContainsFunc(at.needs, func(n need) bool {
		return slices.ContainsFunc(n.from, func(s int) bool { return at.sites[s].reach.wide() })
	})
}

// refusal says why the allocator gave nothing although nothing spoke against it, and whether it was cut off.
func (at *trial) refusal(ctx context.Context, err error) (rule string, unknown bool) {
	switch {
	case err == nil:
		return "no combination of the free devices satisfies all requests and constraints", false
	case errors.Is(err, errTooLong):
		return fmt.Sprintf("not known: the search for devices took more than %d steps", at.f.steps), true
	case errors.Is(err, errNode):
		return errNode.Error(), false
	}
	if fault := at.fault(ctx); fault != "" {
		return fault, false
	}
	for _, w := range at.terms.wants {
		if slices.ContainsFunc(w.options, func(o option) bool { return o.all }) {
			return fmt.Sprintf(
				"request %s asks for all devices, which cannot all be had under the constraints",
				w.name,
			), false
		}
	}
	return plain(err), false
}

// plain says what the allocator says without the names that it puts before it: the answer is for all nodes of the class
// and all claims that ask for the same.
func plain(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	if _, request, found := strings.Cut(err.Error(), ", request "); found {
		return "request " + request
	}
	return err.Error()
}

// fault says which selector fails on a device of the node, "" if none does.
func (at *trial) fault(ctx context.Context) string {
	for _, w := range at.terms.wants {
		for _, o := range w.options {
			for _, s := range slices.Concat(at.sites, at.f.hidden(at.view, at.terms.lens)) {
				if fault := at.terms.selects(ctx, o.kind, s).fault; fault != "" {
					return fmt.Sprintf("request %s: %s", o.name, fault)
				}
			}
		}
	}
	return ""
}

// on returns the demand as it is on a node that offers some of its extended resources itself.
func (d *Demand) on(n *corev1.Node) *Demand {
	if len(d.Extended) == 0 {
		return d
	}
	return d.without[offered(d.Extended, n)]
}

// offered joins the names of the resources that the node offers itself.
func offered(resources []corev1.ResourceName, n *corev1.Node) string {
	var all []string
	for _, r := range resources {
		if q := n.Status.Allocatable[r]; !q.IsZero() {
			all = append(all, string(r))
		}
	}
	return strings.Join(all, ",")
}
