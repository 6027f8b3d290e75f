// Package faults tests scheduler and controller together, in one process and in virtual time, on a cluster with faults:
// refused calls, lost responses, cut watches, lists that skip events, dying leaders, lost nodes, crashing programs,
// users who suspend and delete.
//
//	result, err := faults.Play(ctx, scene, bubble, log)
//
// A Scene is a value that is drawn from a seed, and can be read and written as text. A scene that is played twice has
// the same events in the same order, so a run that breaks an invariant can be repeated, and reduced (Shrink).
//
// # Real components
//
// kube-scheduler with Lockstep's plugins and shipped profile, Lockstep's controller, and JobSet's. Each has caches of
// its own, which lag as the seed says, and calls the API server through a gate (package wire). They are stepped: a
// cycle, a reconciliation, a callback runs in a goroutine until it waits for an answer; then the next one continues.
// Time passes when all of them wait. Nothing else of controller-runtime or of kube-scheduler's command is here: queues,
// elections and informers are the world's.
//
// # Modeled components
//
// The API server (package apiserver), and the Job controller, kubelets, nodes and collectors (package stage). Programs
// run when all ranks of their job do, and end together.
package faults
