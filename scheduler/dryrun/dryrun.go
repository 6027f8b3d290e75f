// Package dryrun marks a scheduling cycle as hypothetical: a plugin that preempts has the framework schedule a gang on a snapshot
// without the victims, and what is answered there is no decision about the gang. The mark travels in the context that the framework
// hands from the preempting plugin to the plugins of that cycle; no plugin has to guess.
package dryrun

import "context"

type key struct{}

// With returns a context of hypothetical cycles.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether the cycle is hypothetical.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
