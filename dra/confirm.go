package dra

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Given are the devices that the allocator gave to one claim.
type Given struct {
	Claim      *resourcev1.ResourceClaim
	Allocation *resourcev1.AllocationResult
}

// Confirmation is the allocator's answer for pods planned on one node.
type Confirmation struct {
	// Pods are the devices of each pod's claims, in the order in which the pods were evaluated; fewer than these if one
	// was refused.
	Pods [][]Given
	// Rule is the reason why the next pod was refused, "" if none was.
	Rule string
	// Unknown is set if its search was cut off.
	Unknown bool
}

// Confirm asks the allocator for the pods that are planned on a node, one after another. The results are assumed in the
// fleet's ledger, which should be a branch: one branch for all nodes of a gang lets members see each other's
// allocations of devices that several nodes reach. The IDs of shares are the allocator's own, new each time; the rest
// of the result depends on the arguments alone. The error is that of the context.
func (f *Fitter) Confirm(ctx context.Context, fleet Fleet, node string, pods ...*Demand) (Confirmation, error) {
	var c Confirmation
	v := fleet.Inventory.view(node)
	for _, d := range pods {
		switch {
		case d.Fault != "":
			c.Rule = d.Fault
			return c, nil
		case v == nil:
			c.Rule = "the node is not known"
			return c, nil
		}
		given, err := f.give(ctx, v, fleet.Ledger, d.on(v.node), &c)
		if err != nil || c.Rule != "" {
			return c, err
		}
		c.Pods = append(c.Pods, given)
	}
	return c, nil
}

// give asks for the claims of one pod.
func (f *Fitter) give(ctx context.Context, v *view, l *Ledger, d *Demand, c *Confirmation) ([]Given, error) {
	if len(d.Claims) == 0 {
		return nil, nil
	}
	rule, at := f.possible(ctx, v, l, d.terms)
	if rule != "" {
		c.Rule = rule
		return nil, nil
	}
	asked := question{v.node, v.published(), v.state(l), d.deviceClasses, d.Claims, f.steps}
	results, err := f.allocator.allocate(ctx, asked)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("confirm devices of node %s: %w", v.node.Name, context.Cause(ctx))
	}
	if results == nil {
		c.Rule, c.Unknown = at.refusal(ctx, err)
		return nil, nil
	}
	given := make([]Given, 0, len(results))
	for i := range results {
		given = append(given, Given{d.Claims[i], &results[i]})
		l.Assume(claimID(d.Claims[i]), &results[i])
	}
	return given, nil
}

// claimID returns the claim's UID, or a stand-in while the claim is not created.
func claimID(c *resourcev1.ResourceClaim) types.UID {
	if c.UID != "" {
		return c.UID
	}
	return types.UID(c.Namespace + "/" + claimName(c))
}
