// Package dryrun marks a scheduling cycle as hypothetical: a plugin that preempts has the framework schedule a gang on
// a snapshot without the victims, and the answer there is no decision about the gang. The mark travels in the context
// that the framework hands from the preempting plugin to the plugins of that cycle; no plugin has to guess.
package dryrun

import (
	"context"

	"github.com/lockstep-project/lockstep/topology"
)

type key struct{}

// Plan is the placement that a dry run has to confirm.
type Plan struct {
	Gang      topology.Gang
	Placement topology.Placement
}

// With returns a context of hypothetical cycles. The gang is placed wherever it fits.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, (*Plan)(nil)) }

// Of returns a context of a hypothetical cycle that confirms a plan.
func Of(ctx context.Context, plan Plan) context.Context { return context.WithValue(ctx, key{}, &plan) }

// Is reports whether the cycle is hypothetical.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// PlanOf returns the plan that the cycle has to confirm, nil if it has none.
func PlanOf(ctx context.Context) *Plan {
	plan, _ := ctx.Value(key{}).(*Plan)
	return plan
}
