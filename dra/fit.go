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

// MostPods is the limit to which a Fit counts: more pods than a node runs.
const MostPods = 256

// DefaultSteps is the number of steps of its search that the allocator may take for one pod on one node. A demand that
// fits needs tens.
const DefaultSteps = 4096

// Fit holds the number of pods with one demand that a node can still take.
type Fit struct {
	Pods int
	// Rule is the reason why the next pod does not fit, "" for none. It names no node and no device.
	Rule string
	// Unknown is set if the search was cut off: Pods is the number found so far, there may be room for more.
	Unknown bool
	// Wide is set if devices that the demand could use reach other nodes too: these nodes compete for them.
	Wide bool
}

// Fitter answers questions and caches the answers, which do not depend on earlier questions. It searches once for all
// nodes that a demand cannot distinguish.
//
// Example: 1,000 nodes have eight GPUs each, and on 600 of them the first is in use. A demand for two GPUs of one model
// reads the attribute productName only. Its lens shows two classes of nodes, of eight and of seven free GPUs; the
// allocator searches twice, for Fit{Pods: 4} and Fit{Pods: 3}, and the other 998 answers come from the map. A demand
// that reads the serial number of a device sees 1,000 classes.
type Fitter struct {
	allocator allocator
	compiled  *cel.Cache
	features  Features
	// steps bounds the allocator's search for one pod on one node.
	steps int64

	// deviceNumbers numbers the descriptions of devices: descriptions of nodes have these numbers instead of texts.
	deviceNumbers numbering
	// nodeNumbers numbers the descriptions of nodes; the number of a description is its nodeClass.
	nodeNumbers numbering
	// expressions caches the attributes that each CEL expression reads and its price, by expression: finding out costs
	// as much as compiling.
	expressions recent[string, expression]
	// lenses interns equal sets of attributes, so that demands that read the same attributes share classes of nodes.
	lenses recent[string, *lens]
	// looks caches the class of each node through each lens.
	looks map[lookAt]look
	// terms interns equal demands. Each remembers the devices that its selectors select.
	terms recent[string, *terms]
	// asked is the number of different terms so far.
	asked uint32
	// fits caches the answers by class and terms.
	fits map[fitKey]Fit
	// text is a buffer for descriptions.
	text []byte
}

type fitKey struct {
	class nodeClass
	terms uint32
}

// NewFitter returns a fitter for a cluster with these features whose allocator may take so many steps for one pod on
// one node; 0 is DefaultSteps.
func NewFitter(features Features, steps int64) *Fitter {
	if steps <= 0 {
		steps = DefaultSteps
	}
	compiled := newCompiler(features)
	return &Fitter{
		allocator:     &upstream{features, compiled},
		compiled:      compiled,
		features:      features,
		steps:         steps,
		deviceNumbers: numbering{numbers: map[string]uint32{}},
		nodeNumbers:   numbering{numbers: map[string]uint32{}},
		looks:         map[lookAt]look{},
		fits:          map[fitKey]Fit{},
	}
}

// Fleet is the subject of a question: the published devices, and the taken ones.
type Fleet struct {
	Inventory *Inventory
	Ledger    *Ledger
}

// Fit returns the number of pods with the demand that the node can still take. The error is that of the context. A
// demand with a fault fits nowhere; one without claims fits everywhere.
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
	// A pool's problem is reported by node: of a class it is only remembered that such pools give nothing.
	if problems := v.problems(); fit.Pods == 0 && len(problems) > 0 {
		fit.Rule += "; a resource pool of the node cannot be used: " + strings.Join(problems, "; ")
	}
	return fit, nil
}

// Classes returns the number of classes of nodes that the demand distinguishes.
func (f *Fitter) Classes(fleet Fleet, d *Demand) int {
	seen := map[nodeClass]bool{}
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
			question{v.node, v.published(), v.state(l), t.deviceClasses, t.claims, f.steps},
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
		return slices.ContainsFunc(n.from, func(s int) bool { return at.devices[s].reach.wide() })
	})
}

// refusal returns the reason why the allocator found nothing although all conditions hold, and whether it was cut off.
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
	for _, w := range at.terms.requests {
		if slices.ContainsFunc(w.alternatives, func(o alternative) bool { return o.all }) {
			return fmt.Sprintf(
				"request %s asks for all devices, which cannot all be had under the constraints",
				w.name,
			), false
		}
	}
	return plain(err), false
}

// plain returns the allocator's message without the names that it puts in front: the answer is for all nodes of the
// class and all claims with the same requests.
func plain(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	if _, request, found := strings.Cut(err.Error(), ", request "); found {
		return "request " + request
	}
	return err.Error()
}

// fault names the selector that fails on a device of the node, "" if none does.
func (at *trial) fault(ctx context.Context) string {
	for _, w := range at.terms.requests {
		for _, o := range w.alternatives {
			for _, s := range slices.Concat(at.devices, at.f.hidden(at.view, at.terms.lens)) {
				if fault := at.terms.selects(ctx, o.kind, s).fault; fault != "" {
					return fmt.Sprintf("request %s: %s", o.name, fault)
				}
			}
		}
	}
	return ""
}

// on returns the demand for a node that offers some of its extended resources itself.
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
