package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Server stores objects.
type Server struct {
	scheme *runtime.Scheme
	now    func() time.Time
	// admit is the admission of objects that are created.
	admit func(client.Object)
	// version is the newest resource version.
	version int64
	// made counts the objects that were created, by kind and name, and by the beginning of generated names: an object's
	// name does not depend on others.
	made  map[string]int64
	kinds map[string]*collection
	// changed are called after each change, in their order.
	changed []func(Event)
}

// collection has the objects of a kind.
type collection struct {
	objects map[types.NamespacedName]client.Object
	// applied has the last applied configuration of each manager, as JSON, by object and manager.
	applied map[types.UID]map[string][]byte
	history []Event
	// compacted is the last version whose history is compacted.
	compacted int64
}

// Event is a change of an object.
type Event struct {
	Version int64
	Kind    string
	// Old is nil for a created object, New for a removed one. A watch never sees New of a deletion; it receives Old
	// with the version of the deletion.
	Old, New client.Object
}

// New returns a server without objects. Kinds are those of the scheme, and no two groups of it have a kind of one name.
// Admission is called for each created object.
func New(scheme *runtime.Scheme, now func() time.Time, admit func(client.Object)) *Server {
	return &Server{
		scheme: scheme,
		now:    now,
		admit:  admit,
		kinds:  make(map[string]*collection),
		made:   make(map[string]int64),
	}
}

// Scheme returns the scheme.
func (s *Server) Scheme() *runtime.Scheme { return s.scheme }

// Changes has a function called after each change.
func (s *Server) Changes(told func(Event)) { s.changed = append(s.changed, told) }

// Version returns the version of the last change.
func (s *Server) Version() int64 { return s.version }

func (s *Server) of(kind string) *collection {
	c := s.kinds[kind]
	if c == nil {
		c = &collection{
			objects: make(map[types.NamespacedName]client.Object), applied: make(map[types.UID]map[string][]byte),
		}
		s.kinds[kind] = c
	}
	return c
}

// KindOf returns the kind of an object or of a list of objects. It panics for one that the scheme does not know: a
// fault of the caller.
func (s *Server) KindOf(o runtime.Object) string {
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		panic(fmt.Sprintf("an object of an unknown kind: %v", err))
	}
	return gvk.Kind
}

// Get returns an object. The error is an API error.
func (s *Server) Get(kind string, name types.NamespacedName) (client.Object, error) {
	if o, ok := s.of(kind).objects[name]; ok {
		return o, nil
	}
	return nil, NotFound(kind, name.Name)
}

// List returns the objects of a kind in a namespace, or in all for "", by namespace and name.
func (s *Server) List(kind, namespace string) []client.Object {
	var list []client.Object
	for name, o := range s.of(kind).objects {
		if namespace == "" || name.Namespace == namespace {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list
}

// Kinds returns the kinds with objects, present or past, by name.
func (s *Server) Kinds() []string { return slices.Sorted(maps.Keys(s.kinds)) }

// Since returns the changes of a kind after a version; false if some of them are compacted.
func (s *Server) Since(kind string, version int64) ([]Event, bool) {
	c := s.of(kind)
	if version < c.compacted {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(c.history, version, func(e Event, v int64) int {
		if e.Version <= v {
			return -1
		}
		return 1
	})
	return c.history[at:], true
}

// Compact forgets all changes up to now.
func (s *Server) Compact() {
	for _, c := range s.kinds {
		c.history, c.compacted = nil, s.version
	}
}

// Create stores a new object and returns it. The error is an API error.
func (s *Server) Create(given client.Object) (client.Object, error) {
	kind := s.KindOf(given)
	o := clone(given)
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + suffix(s.count(kind, o.GetNamespace(), o.GetGenerateName())))
	}
	c := s.of(kind)
	if _, ok := c.objects[client.ObjectKeyFromObject(o)]; ok {
		return nil, alreadyExists(kind, o.GetName())
	}
	o.SetUID(types.UID(fmt.Sprintf(
		"%s-%s-%d", strings.ToLower(kind), o.GetName(), s.count(kind, o.GetNamespace(), o.GetName()))))
	o.SetCreationTimestamp(metav1.NewTime(s.now().Truncate(time.Second)))
	o.SetDeletionTimestamp(nil)
	o.SetGeneration(1)
	if hasStatus(kind) {
		set(o, "Status", reflect.Value{})
	}
	s.scheme.Default(o)
	s.admit(o)
	s.put(kind, nil, o)
	return o, nil
}

func (s *Server) count(kind, namespace, name string) int64 {
	key := kind + "/" + namespace + "/" + name
	s.made[key]++
	return s.made[key]
}

// Update stores a changed object: all but its status, or only that. The error is an API error: a conflict if the
// version or UID that the object names is not the present one.
func (s *Server) Update(given client.Object, subresource string) (client.Object, error) {
	kind := s.KindOf(given)
	old, err := s.Get(kind, client.ObjectKeyFromObject(given))
	if err != nil {
		return nil, err
	}
	if v := given.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return nil, conflict(
			kind,
			old.GetName(),
			"the object has been modified; version "+v+" is not "+old.GetResourceVersion(),
		)
	}
	if uid := given.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, conflict(kind, old.GetName(), "Precondition failed: UID in precondition: "+string(uid))
	}
	next := clone(given)
	if hasStatus(kind) {
		if subresource == "status" {
			status := field(next, "Status")
			next = clone(old)
			set(next, "Status", status)
		} else {
			set(next, "Status", field(old, "Status"))
		}
	}
	next.SetUID(old.GetUID())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetGeneration(old.GetGeneration())
	s.scheme.Default(next)
	if !same(field(old, "Spec"), field(next, "Spec")) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if equality.Semantic.DeepEqual(old, next) {
		return old, nil
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 && kind != "Pod" {
		s.drop(kind, old)
		return next, nil
	}
	if kind == "Pod" && isZero(next.GetDeletionGracePeriodSeconds()) && next.GetDeletionTimestamp() != nil &&
		len(next.GetFinalizers()) == 0 {
		s.drop(kind, old)
		return next, nil
	}
	s.put(kind, old, next)
	return next, nil
}

// put stores an object in the place of an old one, nil for none.
func (s *Server) put(kind string, old, next client.Object) {
	s.version++
	next.SetResourceVersion(strconv.FormatInt(s.version, 10))
	next.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	s.of(kind).objects[client.ObjectKeyFromObject(next)] = next
	s.note(Event{Version: s.version, Kind: kind, Old: old, New: next})
}

// drop removes an object.
func (s *Server) drop(kind string, old client.Object) {
	s.version++
	c := s.of(kind)
	delete(c.objects, client.ObjectKeyFromObject(old))
	delete(c.applied, old.GetUID())
	last := clone(old)
	last.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.note(Event{Version: s.version, Kind: kind, Old: last})
}

func (s *Server) note(e Event) {
	c := s.of(e.Kind)
	c.history = append(c.history, e)
	for _, told := range s.changed {
		told(e)
	}
}

func clone(o client.Object) client.Object {
	c, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		panic(fmt.Sprintf("a copy of a %T is no API object", o))
	}
	return c
}

func isZero(n *int64) bool { return n == nil || *n == 0 }

// suffix is five letters for the name of the n-th object of a beginning.
func suffix(n int64) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, 5)
	for i := range out {
		out[len(out)-1-i] = letters[n%int64(len(letters))]
		n /= int64(len(letters))
	}
	return string(out)
}
