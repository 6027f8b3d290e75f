package podgrouper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Objects reads the objects behind marks.
type Objects struct {
	Dynamic   dynamic.Interface
	Discovery discovery.DiscoveryInterface
}

// errNoSource indicates that the object behind a mark does not exist yet, or that its kind is not served.
var errNoSource = errors.New("the object that describes the gang does not exist")

// source is an object behind a mark, as far as dialects read it.
type source struct {
	id        identity
	reference metav1.OwnerReference
	content   map[string]any
	// status is that of a kind whose status its dialect writes.
	status map[string]any
	// others says that something else has written the status.
	others bool
}

// identity is an object's place in the cluster.
type identity struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// sources follows the objects behind marks. A kind is followed from the first mark that needs it: a cluster has few of
// the kinds that there are.
type sources struct {
	objects Objects
	clock   clock.PassiveClock
	// changed is called with the key of a PodGroup whose object has changed.
	changed func(key string)

	mu       sync.Mutex
	followed map[schema.GroupVersionResource]informers.GenericInformer
	// unserved has the instant until which a kind is taken for one that is not served. Only the worker uses it.
	unserved map[schema.GroupVersionResource]time.Time
	// behind has the object behind each PodGroup, ahead the PodGroups of each object.
	behind map[string]identity
	ahead  map[identity][]string
}

func newSources(objects Objects, c clock.PassiveClock, changed func(key string)) *sources {
	return &sources{
		objects:  objects,
		clock:    c,
		changed:  changed,
		followed: make(map[schema.GroupVersionResource]informers.GenericInformer),
		unserved: make(map[schema.GroupVersionResource]time.Time),
		behind:   make(map[string]identity),
		ahead:    make(map[identity][]string),
	}
}

// of returns the object behind a mark; nil for a mark that needs none. The PodGroup of that key is looked at again when
// the object changes.
func (s *sources) of(ctx context.Context, key string, mark dialects.Mark, pod *corev1.Pod) (*source, error) {
	if mark.Dialect.Source == nil {
		return nil, nil
	}
	names := mark.Dialect.Source(pod)
	id := identity{names.Resource, pod.Namespace, names.Name}
	s.depend(key, id)
	keep := cache.TransformFunc(slim)
	if mark.Dialect.Status != nil {
		keep = slimWithStatus
	}
	lister, err := s.follow(ctx, names.Resource, keep)
	if err != nil {
		return nil, err
	}
	return read(lister, id)
}

// read returns an object from a cache.
func read(lister cache.GenericLister, id identity) (*source, error) {
	object, err := lister.ByNamespace(id.namespace).Get(id.name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %s: %w", id.resource.GroupResource(), id.name, errNoSource)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", id.resource.GroupResource(), id.name, err)
	}
	found, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("reading %s %s: it is a %T", id.resource.GroupResource(), id.name, object)
	}
	status, _, _ := unstructured.NestedMap(found.Object, "status")
	return &source{
		id: id, status: status, others: len(found.GetManagedFields()) > 0,
		reference: metav1.OwnerReference{
			APIVersion: found.GetAPIVersion(), Kind: found.GetKind(), Name: found.GetName(), UID: found.GetUID(),
		},
		content: found.Object,
	}, nil
}

// known returns the object behind a PodGroup, as far as that is known without asking; nil if it is not. Only the worker
// calls it.
func (s *sources) known(key string) *source {
	s.mu.Lock()
	id, known := s.behind[key]
	s.mu.Unlock()
	followed := s.followed[id.resource]
	if !known || followed == nil || !followed.Informer().HasSynced() {
		return nil
	}
	found, err := read(followed.Lister(), id)
	if err != nil {
		return nil
	}
	return found
}

// exists reports whether the object behind a PodGroup exists, as far as that is known. After a restart it is not known
// of PodGroups without pods: the garbage collector deletes these with the object.
func (s *sources) exists(key string) bool {
	s.mu.Lock()
	id, known := s.behind[key]
	s.mu.Unlock()
	followed := s.followed[id.resource]
	if !known || followed == nil || !followed.Informer().HasSynced() {
		return true
	}
	_, err := followed.Lister().ByNamespace(id.namespace).Get(id.name)
	return !apierrors.IsNotFound(err)
}

// depend notes which object is behind a PodGroup.
func (s *sources) depend(key string, on identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behind[key] == on {
		return
	}
	s.drop(key)
	s.behind[key] = on
	s.ahead[on] = append(s.ahead[on], key)
}

// forget ends a dependency that depend began.
func (s *sources) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

func (s *sources) drop(key string) {
	on, has := s.behind[key]
	if !has {
		return
	}
	delete(s.behind, key)
	s.ahead[on] = slices.DeleteFunc(s.ahead[on], func(other string) bool { return other == key })
	if len(s.ahead[on]) == 0 {
		delete(s.ahead, on)
	}
}

// patience is the time for which the worker waits for the objects of a kind, which many later gangs may need.
const patience = 5 * time.Second

// askAgain is the time after which the API server is asked again for a kind that it does not serve. Any pod can have a
// mark of such a kind, and one worker asks for the pods of all tenants.
const askAgain = 30 * time.Second

// follow returns the lister of a kind, which it begins to follow at the first call, with as much of each object as keep
// retains. Only the worker calls it.
func (s *sources) follow(
	ctx context.Context, resource schema.GroupVersionResource, keep cache.TransformFunc,
) (cache.GenericLister, error) {
	followed, known := s.followed[resource]
	if !known {
		var err error
		if followed, err = s.begin(ctx, resource, keep); err != nil {
			return nil, err
		}
		s.followed[resource] = followed
	}
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if !cache.WaitForCacheSync(waiting.Done(), followed.Informer().HasSynced) {
		return nil, fmt.Errorf("%s are not known yet: %w", resource.GroupResource(), errNoSource)
	}
	return followed.Lister(), nil
}

// begin starts to follow a kind, if it is served.
func (s *sources) begin(
	ctx context.Context, resource schema.GroupVersionResource, keep cache.TransformFunc,
) (informers.GenericInformer, error) {
	errUnserved := fmt.Errorf("%s are not served: %w", resource.GroupResource(), errNoSource)
	if s.clock.Now().Before(s.unserved[resource]) {
		return nil, errUnserved
	}
	served, err := s.objects.Discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("asking whether %s are served: %w", resource.GroupResource(), err)
	}
	is := func(r metav1.APIResource) bool { return r.Name == resource.Resource }
	if err != nil || !slices.ContainsFunc(served.APIResources, is) {
		s.unserved[resource] = s.clock.Now().Add(askAgain)
		return nil, errUnserved
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	followed := dynamicinformer.NewFilteredDynamicInformer(
		s.objects.Dynamic,
		resource,
		metav1.NamespaceAll,
		0,
		indexers,
		nil,
	)
	happened := func(object any) { s.happened(resource, object) }
	_, err = followed.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: happened, UpdateFunc: func(_, now any) { happened(now) }, DeleteFunc: happened,
	})
	if err := errors.Join(err, followed.Informer().SetTransform(keep)); err != nil {
		return nil, fmt.Errorf("following %s: %w", resource.GroupResource(), err)
	}
	go followed.Informer().RunWithContext(ctx)
	return followed, nil
}

func (s *sources) happened(resource schema.GroupVersionResource, object any) {
	found, ok := snapshot.ObjectOf[*unstructured.Unstructured](object)
	if !ok {
		return
	}
	s.mu.Lock()
	keys := slices.Clone(s.ahead[identity{resource, found.GetNamespace(), found.GetName()}])
	s.mu.Unlock()
	for _, key := range keys {
		s.changed(key)
	}
}

// slim retains of an object as much as dialects may read: templates of pods are most of it, and its status and managed
// fields change all the time.
func slim(object any) (any, error) {
	if found, ok := object.(*unstructured.Unstructured); ok {
		found.SetManagedFields(nil)
		delete(found.Object, "status")
		dropPodTemplates(found.Object)
	}
	return object, nil
}

// slimWithStatus is slim for a kind whose status is written: it retains the status, and its other writers.
func slimWithStatus(object any) (any, error) {
	if found, ok := object.(*unstructured.Unstructured); ok {
		found.SetManagedFields(statusManagers(found))
		dropPodTemplates(found.Object)
	}
	return object, nil
}

// statusManagers returns the other writers of an object's status.
func statusManagers(object *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var others []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" && entry.Manager != statusManager {
			others = append(others, metav1.ManagedFieldsEntry{Manager: entry.Manager, Subresource: entry.Subresource})
		}
	}
	return others
}

// dropPodTemplates removes every map that has containers.
func dropPodTemplates(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if spec, ok := below.(map[string]any); ok && spec["containers"] != nil {
				delete(value, key)
				continue
			}
			dropPodTemplates(below)
		}
	case []any:
		for _, below := range value {
			dropPodTemplates(below)
		}
	}
}
