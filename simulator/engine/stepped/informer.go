package stepped

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Informer is a store of one kind of objects. It calls its handlers in the caller's goroutine, in the order in which
// they were added.
type Informer struct {
	cache.SharedIndexInformer // nil: methods that are not overridden are never called

	objects   cache.Indexer
	followers []cache.ResourceEventHandler
	transform cache.TransformFunc
	synced    synced
}

// NewInformer returns an empty informer that is synced.
func NewInformer() *Informer {
	i := NewUnfilled()
	close(i.synced.done)
	return i
}

// NewUnfilled returns an informer that has not listed yet: it is synced when it is filled.
func NewUnfilled() *Informer {
	return &Informer{
		objects: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		}),
		synced: synced{make(chan struct{})},
	}
}

// Object is an API object.
type Object interface {
	runtime.Object
	GetNamespace() string
	GetName() string
}

// NameOf returns the name of an object.
func NameOf(o Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Fill gives the informer its first list, and notifies its handlers. The informer is synced then. An error is a fault
// of the informer's indexers or of its transform, as everywhere here.
func (i *Informer) Fill(list []Object) error {
	for _, o := range list {
		if err := i.add(o, true); err != nil {
			return err
		}
	}
	close(i.synced.done)
	return nil
}

// Set puts an object into the place of the one of its name, or adds it.
func (i *Informer) Set(o Object) error {
	if old, ok := Get[Object](i, NameOf(o)); ok {
		return i.Update(old, o)
	}
	return i.Add(o)
}

// Replace gives the informer a new list, as after a watch that was cut. Objects that are not in it are deleted; their
// followers get the last known state in a DeletedFinalStateUnknown.
func (i *Informer) Replace(list []Object) error {
	there := make(map[types.NamespacedName]bool, len(list))
	for _, o := range list {
		there[NameOf(o)] = true
	}
	for _, old := range i.Objects() {
		if there[NameOf(old)] {
			continue
		}
		key, err := cache.MetaNamespaceKeyFunc(old)
		if err != nil {
			return fmt.Errorf("naming %s: %w", old.GetName(), err)
		}
		if err := i.objects.Delete(old); err != nil {
			return fmt.Errorf("dropping %s: %w", key, err)
		}
		for _, f := range i.followers {
			f.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: old})
		}
	}
	for _, o := range list {
		if err := i.Set(o); err != nil {
			return err
		}
	}
	return nil
}

// Objects returns the informer's objects, by namespace and name. A store lists them in the order of a map.
func (i *Informer) Objects() []Object {
	var list []Object
	for _, key := range slices.Sorted(slices.Values(i.objects.ListKeys())) {
		found, _, err := i.objects.GetByKey(key)
		if o, ok := found.(Object); ok && err == nil {
			list = append(list, o)
		}
	}
	return list
}

// Add adds an object that is new.
func (i *Informer) Add(o Object) error { return i.add(o, false) }

func (i *Informer) add(o Object, initial bool) error {
	o, err := i.seen(o)
	if err != nil {
		return err
	}
	if err := i.objects.Add(o); err != nil {
		return fmt.Errorf("keeping %s: %w", o.GetName(), err)
	}
	for _, f := range i.followers {
		f.OnAdd(o, initial)
	}
	return nil
}

// Update puts an object into the place of an older one.
func (i *Informer) Update(old, now Object) error {
	now, err := i.seen(now)
	if err != nil {
		return err
	}
	if err := i.objects.Update(now); err != nil {
		return fmt.Errorf("keeping %s: %w", now.GetName(), err)
	}
	for _, f := range i.followers {
		f.OnUpdate(old, now)
	}
	return nil
}

// Remove removes an object, whose last state this is.
func (i *Informer) Remove(o Object) error {
	o, err := i.seen(o)
	if err != nil {
		return err
	}
	if err := i.objects.Delete(o); err != nil {
		return fmt.Errorf("dropping %s: %w", o.GetName(), err)
	}
	for _, f := range i.followers {
		f.OnDelete(o)
	}
	return nil
}

// seen returns the informer's copy of an object.
func (i *Informer) seen(o Object) (Object, error) {
	if i.transform == nil {
		return o, nil
	}
	seen, err := i.transform(o)
	if err != nil {
		return nil, fmt.Errorf("transforming %s: %w", o.GetName(), err)
	}
	kept, ok := seen.(Object)
	if !ok {
		return nil, fmt.Errorf("transforming %s: it became a %T", o.GetName(), seen)
	}
	return kept, nil
}

// Get returns the object of a name; false for none, and for one of another kind.
func Get[T Object](i *Informer, name types.NamespacedName) (T, bool) {
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
func (i *Informer) AddEventHandler(
	h cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	i.followers = append(i.followers, h)
	return i.synced, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: nothing is delivered twice.
func (i *Informer) AddEventHandlerWithResyncPeriod(
	h cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *Informer) AddEventHandlerWithOptions(
	h cache.ResourceEventHandler, _ cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddIndexers adds indexers.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if err := i.objects.AddIndexers(indexers); err != nil {
		return fmt.Errorf("indexing: %w", err)
	}
	return nil
}

// GetIndexer is the store.
func (i *Informer) GetIndexer() cache.Indexer { return i.objects }

// GetStore is the store.
func (i *Informer) GetStore() cache.Store { return i.objects }

// HasSynced reports whether the first list has been delivered.
func (i *Informer) HasSynced() bool { return i.synced.HasSynced() }

// HasSyncedChecker reports the same.
func (i *Informer) HasSyncedChecker() cache.DoneChecker { return i.synced }

// SetTransform has objects changed before they are stored and delivered.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	i.transform = transform
	return nil
}

// RunWithContext does nothing.
func (*Informer) RunWithContext(context.Context) {}

// synced reports that all initial objects have been delivered.
type synced struct{ done chan struct{} }

// HasSynced reports whether the channel is closed.
func (s synced) HasSynced() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// HasSyncedChecker reports the same.
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }

// Name is for logs.
func (synced) Name() string { return "virtual" }

// Done is closed then.
func (s synced) Done() <-chan struct{} { return s.done }
