// Package wire connects processes with package apiserver: clients whose calls stop at a gate until the driver of the
// world lets them through, with the faults on the way. Processes run in goroutines; the gate puts their calls into an
// order that is the same each time, if it is asked only when all of them stand still (testing/synctest.Wait).
package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is the verb of a call.
type Verb string

// The verbs.
const (
	Get    Verb = "get"
	List   Verb = "list"
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Apply  Verb = "apply"
	Delete Verb = "delete"
	Bind   Verb = "bind"
)

// Reads reports whether the verb changes nothing.
func (v Verb) Reads() bool { return v == Get || v == List }

// Request describes a call.
type Request struct {
	Verb Verb
	// Kind and Subresource are those of the requested object, Name is its name; a list's Name has a namespace only.
	Kind, Subresource string
	Name              types.NamespacedName
	// Body is the content that a scheduler sends along: several of its goroutines may write to one object at once.
	Body string
}

// Call is a request that a process has made and that has no answer yet.
type Call struct {
	Request

	// Process is the caller.
	Process *Process

	do     func() (any, error)
	answer chan answer
}

type answer struct {
	value any
	err   error
}

// String is the call as a log has it.
func (c *Call) String() string {
	what := c.Kind
	if c.Subresource != "" {
		what += "/" + c.Subresource
	}
	return fmt.Sprintf("%s: %s %s %s", c.Process.Name, c.Verb, what, c.Name)
}

// Outcome is the fate of a call.
type Outcome string

const (
	// Answered is a call that is carried out and answered.
	Answered Outcome = "answered"
	// Busy is one that is answered with 429.
	Busy Outcome = "429"
	// Unsent is one that does not reach the server.
	Unsent Outcome = "unsent"
	// Lost is one whose answer is lost.
	Lost Outcome = "answer lost"
)

// End carries a call out according to its outcome, and answers it. It returns the caller's error.
func (c *Call) End(o Outcome) error {
	var a answer
	switch o {
	case Busy:
		a.err = apierrors.NewTooManyRequests(
			"the server has received too many requests and has asked us to try again later",
			1,
		)
	case Unsent:
		a.err = errUnsent(c)
	case Lost:
		_, _ = c.do() // the answer is dropped
		a.err = errLost(c)
	case Answered:
		a.value, a.err = c.do()
	}
	c.answer <- a
	return a.err
}

func errUnsent(c *Call) error {
	return fmt.Errorf("%s %q: dial tcp: connect: connection refused", c.Verb, c.Kind) //nolint:err113 // as net says it
}

func errLost(c *Call) error {
	return fmt.Errorf("%s %q: http2: client connection lost", c.Verb, c.Kind) //nolint:err113 // as net/http says it
}

// Process is a caller.
type Process struct {
	Name string
	gate *Gate

	mu   sync.Mutex
	dead bool
}

// Die has all later calls of the process fail: it exists no more.
func (p *Process) Die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// Dead reports whether the process has died.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// call stops at the gate, and returns the answer.
func (p *Process) call(ctx context.Context, r Request, do func() (any, error)) (any, error) {
	c := &Call{Process: p, Request: r, do: do, answer: make(chan answer, 1)}
	if p.Dead() {
		return nil, errUnsent(c)
	}
	p.gate.stop(c)
	select {
	case a := <-c.answer:
		return a.value, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s %q: %w", r.Verb, r.Kind, ctx.Err())
	}
}

// Gate stops calls. Its zero value is ready.
type Gate struct {
	mu    sync.Mutex
	calls []*Call
}

// Process returns a new process, whose calls stop here.
func (g *Gate) Process(name string) *Process { return &Process{Name: name, gate: g} }

func (g *Gate) stop(c *Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, c)
}

// Take returns the calls that stopped since the last Take, by process, verb, kind, name and body.
func (g *Gate) Take() []*Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := g.calls
	g.calls = nil
	slices.SortStableFunc(calls, func(a, b *Call) int {
		return cmp.Or(
			cmp.Compare(a.Process.Name, b.Process.Name), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name.Namespace, b.Name.Namespace), cmp.Compare(a.Name.Name, b.Name.Name),
			cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Body, b.Body),
		)
	})
	return calls
}
