package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// informer is a store of one kind of objects that tells who follows it of every change, in the caller's goroutine, in the order in which
// they came: the scheduler's own handlers are the last.
type informer struct {
	cache.SharedIndexInformer // nil: what is not overridden is never called

	objects   cache.Indexer
	followers []cache.ResourceEventHandler
}

func newInformer() *informer {
	return &informer{objects: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})}
}

// object is an API object.
type object interface {
	runtime.Object
	GetNamespace() string
	GetName() string
}

// nameOf is the name of an object.
func nameOf(o object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (i *informer) add(o object) error {
	if err := i.objects.Add(o); err != nil {
		return fmt.Errorf("keeping %s: %w", o.GetName(), err)
	}
	for _, f := range i.followers {
		f.OnAdd(o, false)
	}
	return nil
}

func (i *informer) update(old, now object) error {
	if err := i.objects.Update(now); err != nil {
		return fmt.Errorf("keeping %s: %w", now.GetName(), err)
	}
	for _, f := range i.followers {
		f.OnUpdate(old, now)
	}
	return nil
}

func (i *informer) remove(o object) error {
	if err := i.objects.Delete(o); err != nil {
		return fmt.Errorf("dropping %s: %w", o.GetName(), err)
	}
	for _, f := range i.followers {
		f.OnDelete(o)
	}
	return nil
}

// get is the object of a name; false for none.
func get[T object](i *informer, name types.NamespacedName) (T, bool) {
	var none T
	key := name.Name
	if name.Namespace != "" {
		key = name.Namespace + "/" + name.Name
	}
	found, ok, err := i.objects.GetByKey(key)
	if err != nil || !ok {
		return none, false
	}
	o, ok := found.(T)
	return o, ok
}

// AddEventHandler has the handler follow from now on.
func (i *informer) AddEventHandler(
	h cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	i.followers = append(i.followers, h)
	return synced{}, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: nothing is told twice.
func (i *informer) AddEventHandlerWithResyncPeriod(
	h cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *informer) AddEventHandlerWithOptions(
	h cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddIndexers adds indexers.
func (i *informer) AddIndexers(indexers cache.Indexers) error {
	if err := i.objects.AddIndexers(indexers); err != nil {
		return fmt.Errorf("indexing: %w", err)
	}
	return nil
}

// GetIndexer is the store.
func (i *informer) GetIndexer() cache.Indexer { return i.objects }

// GetStore is the store.
func (i *informer) GetStore() cache.Store { return i.objects }

// HasSynced is true: nothing is behind.
func (*informer) HasSynced() bool { return true }

// HasSyncedChecker says the same.
func (*informer) HasSyncedChecker() cache.DoneChecker { return synced{} }

// SetTransform does nothing: objects are as they are to be.
func (*informer) SetTransform(cache.TransformFunc) error { return nil }

// RunWithContext does nothing.
func (*informer) RunWithContext(context.Context) {}

// synced says that all has been told.
type synced struct{}

// HasSynced is true.
func (synced) HasSynced() bool { return true }

// HasSyncedChecker says the same.
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }

// Name is for logs.
func (synced) Name() string { return "virtual" }

// Done is closed.
func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// touched gives an object that is about to replace another one a resource version of its own: handlers ignore equal ones.
func touched[T object](w *world, o T) T {
	if m, err := meta.Accessor(o); err == nil {
		m.SetResourceVersion(w.version())
	}
	return o
}
