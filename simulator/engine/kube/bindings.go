package kube

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

// bindingsName is the name of the plugin that follows bindings.
const bindingsName = "FollowBindings"

// bindings is a plugin that tracks the pods on their way to their nodes: the scheduler binds each in a goroutine of its
// own, and the next step must not begin before all are done.
type bindings struct {
	mu    sync.Mutex
	empty *sync.Cond
	pods  sets.Set[types.UID]
}

var (
	_ fwk.PermitPlugin   = (*bindings)(nil)
	_ fwk.PostBindPlugin = (*bindings)(nil)
)

func newBindings() *bindings {
	b := &bindings{pods: sets.New[types.UID]()}
	b.empty = sync.NewCond(&b.mu)
	return b
}

func (b *bindings) make(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return b, nil
}

// Name returns the plugin's name.
func (*bindings) Name() string { return bindingsName }

// Permit notes that a pod is about to be bound. It is not called while a group's cycle tries its members.
func (b *bindings) Permit(
	_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string,
) (*fwk.Status, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods.Insert(pod.UID)
	return nil, 0
}

// PostBind notes that it is there.
func (b *bindings) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	b.done(pod.UID)
}

// done is also called when the scheduler has dealt with a pod that cannot be bound.
func (b *bindings) done(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods.Delete(pod)
	if b.pods.Len() == 0 {
		b.empty.Broadcast()
	}
}

// wait waits until no pod is on the way.
func (b *bindings) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.pods.Len() > 0 {
		b.empty.Wait()
	}
}
