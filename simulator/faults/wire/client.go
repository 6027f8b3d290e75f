package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

// Indices are the values of objects under the indices of a cache, by the index's name.
type Indices map[string]client.IndexerFunc

// Client is a client of the process as controllers have it.
type Client struct {
	process *Process
	server  *apiserver.Server
	// caches answer reads of their kinds; nil for a client that reads nothing from memory.
	caches  map[string]*stepped.Informer
	indices Indices
}

var _ client.Client = (*Client)(nil)

// NewClient returns a client that reads the kinds of the caches from them, and all others, and with nil caches all,
// from the server.
func NewClient(p *Process, s *apiserver.Server, caches map[string]*stepped.Informer, indices Indices) *Client {
	return &Client{process: p, server: s, caches: caches, indices: indices}
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := c.server.KindOf(into)
	if cache, ok := c.caches[kind]; ok {
		o, ok := stepped.Get[client.Object](cache, key)
		if !ok {
			return apiserver.NotFound(kind, key.Name)
		}
		return c.copy(o, into)
	}
	value, err := c.process.call(
		ctx,
		Request{Verb: Get, Kind: kind, Name: key},
		func() (any, error) { return c.server.Get(kind, key) },
	)
	return c.answered(value, err, into)
}

// List reads objects.
func (c *Client) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(into, c.server.Scheme())
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	kind := gvk.Kind[:len(gvk.Kind)-len("List")]
	objects, err := c.list(ctx, kind, o.Namespace)
	if err != nil {
		return err
	}
	return setItems(into, objects, func(object client.Object) bool {
		return (o.LabelSelector == nil || o.LabelSelector.Matches(labelsOf(object))) &&
			c.matches(object, o.FieldSelector)
	})
}

func (c *Client) list(ctx context.Context, kind, namespace string) ([]client.Object, error) {
	cache, ok := c.caches[kind]
	if !ok {
		value, err := c.process.call(
			ctx,
			Request{Verb: List, Kind: kind, Name: types.NamespacedName{Namespace: namespace}},
			func() (any, error) { return c.server.List(kind, namespace), nil },
		)
		objects, _ := value.([]client.Object)
		return objects, err
	}
	var objects []client.Object
	for _, found := range cache.Objects() {
		if o, ok := found.(client.Object); ok && (namespace == "" || o.GetNamespace() == namespace) {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (c *Client) matches(o client.Object, by fields.Selector) bool {
	if by == nil {
		return true
	}
	for _, r := range by.Requirements() {
		index, ok := c.indices[r.Field]
		if !ok || !slices.Contains(index(o), r.Value) {
			return false
		}
	}
	return true
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	given, err := c.typed(o)
	if err != nil {
		return err
	}
	value, err := c.process.call(
		ctx,
		Request{Verb: Create, Kind: c.server.KindOf(o), Name: client.ObjectKeyFromObject(o)},
		func() (any, error) { return c.server.Create(given) },
	)
	return c.answered(value, err, o)
}

// Update replaces an object.
func (c *Client) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.update(ctx, o, "")
}

func (c *Client) update(ctx context.Context, o client.Object, subresource string) error {
	given, err := c.typed(o)
	if err != nil {
		return err
	}
	r := Request{Verb: Update, Kind: c.server.KindOf(o), Subresource: subresource, Name: client.ObjectKeyFromObject(o)}
	value, err := c.process.call(ctx, r,
		func() (any, error) { return c.server.Update(given, subresource) })
	return c.answered(value, err, o)
}

// Patch changes an object.
func (c *Client) Patch(ctx context.Context, o client.Object, by client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, o, by, "")
}

func (c *Client) patch(ctx context.Context, o client.Object, by client.Patch, subresource string) error {
	data, err := by.Data(o)
	if err != nil {
		return fmt.Errorf("making a patch: %w", err)
	}
	kind, key := c.server.KindOf(o), client.ObjectKeyFromObject(o)
	value, err := c.process.call(ctx, Request{Verb: Patch, Kind: kind, Subresource: subresource, Name: key},
		func() (any, error) { return c.server.Patch(kind, key, by.Type(), data, subresource) })
	return c.answered(value, err, o)
}

// Apply applies an object.
func (c *Client) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var o client.ApplyOptions
	o.ApplyOptions(opts)
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encoding what is applied: %w", err)
	}
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &wanted.Object); err != nil {
		return fmt.Errorf("decoding what is applied: %w", err)
	}
	value, err := c.process.call(
		ctx,
		Request{Verb: Apply, Kind: wanted.GetKind(), Name: client.ObjectKeyFromObject(wanted)},
		func() (any, error) { return c.server.Apply(o.FieldManager, wanted, data, "") },
	)
	if err != nil {
		return err
	}
	stored, _ := value.(client.Object)
	if named, ok := config.(interface{ UnstructuredContent() map[string]any }); ok {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return fmt.Errorf("reading what was applied: %w", err)
		}
		content["apiVersion"], content["kind"] = wanted.GetAPIVersion(), wanted.GetKind()
		into := named.UnstructuredContent()
		clear(into)
		maps.Copy(into, content)
	}
	return nil
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	kind, key := c.server.KindOf(o), client.ObjectKeyFromObject(o)
	_, err := c.process.call(ctx, Request{Verb: Delete, Kind: kind, Name: key},
		func() (any, error) { return nil, c.server.Delete(kind, key, *options.AsDeleteOptions()) })
	return err
}

var errNotInModel = errors.New("controllers that are tried here do not need it")

// DeleteAllOf fails.
func (*Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errNotInModel
}

// Status returns a client of the subresource status.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") } //nolint:ireturn // as declared

// SubResource returns a client of a subresource.
func (c *Client) SubResource(name string) client.SubResourceClient { //nolint:ireturn // as declared
	return subresource{c, name}
}

// Scheme returns the server's scheme.
func (c *Client) Scheme() *runtime.Scheme { return c.server.Scheme() }

// RESTMapper returns nil.
func (*Client) RESTMapper() meta.RESTMapper { return nil } //nolint:ireturn // as declared

// GroupVersionKindFor returns the kind of an object.
func (c *Client) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, c.server.Scheme()) //nolint:wrapcheck // as a client does
}

// IsObjectNamespaced fails.
func (*Client) IsObjectNamespaced(runtime.Object) (bool, error) { return false, errNotInModel }

func (c *Client) answered(value any, err error, into client.Object) error {
	if err != nil {
		return err
	}
	o, ok := value.(client.Object)
	if !ok {
		return fmt.Errorf("%w: a %T", errNotServed, value)
	}
	return c.copy(o, into)
}

// typed is an object as the server stores it.
func (c *Client) typed(o client.Object) (client.Object, error) {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	made, err := c.server.Scheme().New(raw.GroupVersionKind())
	if err != nil {
		return o, nil //nolint:nilerr // a kind that has no Go type
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, made); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	typed, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%w: a %T", errNotServed, made)
	}
	return typed, nil
}

// copy copies an object of the server, or of a cache, into one of the caller.
func (c *Client) copy(o, into client.Object) error {
	switch into := into.(type) {
	case *metav1.PartialObjectMetadata:
		kind := into.TypeMeta
		into.ObjectMeta = *metaOf(o).DeepCopy()
		into.TypeMeta = kind
		return nil
	case *unstructured.Unstructured:
		gvk := into.GroupVersionKind()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("reading an object: %w", err)
		}
		into.Object = content
		into.SetGroupVersionKind(gvk)
		return nil
	}
	from, to := reflect.ValueOf(o.DeepCopyObject()), reflect.ValueOf(into)
	if from.Type() != to.Type() {
		return fmt.Errorf("%w: a %T as a %T", errNotServed, o, into)
	}
	to.Elem().Set(from.Elem())
	return nil
}

func metaOf(o client.Object) *metav1.ObjectMeta {
	out := &metav1.ObjectMeta{}
	if of, ok := o.(metav1.ObjectMetaAccessor); ok {
		if m, ok := of.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return m
		}
	}
	return out
}

func labelsOf(o client.Object) labels.Set { return o.GetLabels() }

// subresource is a client of a subresource.
type subresource struct {
	of   *Client
	name string
}

// Get fails.
func (subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errNotInModel
}

// Create fails.
func (subresource) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errNotInModel
}

// Update replaces it.
func (s subresource) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.of.update(ctx, o, s.name)
}

// Patch changes it.
func (s subresource) Patch(
	ctx context.Context, o client.Object, by client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return s.of.patch(ctx, o, by, s.name)
}

// Apply fails.
func (subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errNotInModel
}
