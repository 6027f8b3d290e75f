package cluster

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Create creates a user's object as the cluster's administrator and returns the stored object. Fields that the API
// server does not know are refused, as kubectl would. A namespace is ready for pods.
func (c *Cluster) Create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := c.resource(object)
	if err != nil {
		return nil, err
	}
	created, err := resource.Create(ctx, object, metav1.CreateOptions{
		FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		return nil, fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Namespace") && c.plan.real == nil {
		return created, c.waitForAccount(ctx, object.GetName())
	}
	return created, nil
}

// Apply creates or updates an object as the cluster's administrator.
func (c *Cluster) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// ApplyAll applies objects in order, as kubectl apply --server-side --force-conflicts does.
func (c *Cluster) ApplyAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := c.Apply(ctx, object); err != nil {
			return err
		}
	}
	return c.waitForCRDs(ctx)
}

// fieldManager owns the fields that lockstep up writes.
const fieldManager = "lockstep-up"

// resource is the endpoint for an object's kind, in its namespace if the kind has namespaces: the one called default,
// as for kubectl, if the object names none.
func (c *Cluster) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		c.mapper.Reset() // the kind may have been added with a CRD a moment ago
		if mapping, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			return nil, fmt.Errorf("finding %s: %w", kind, err)
		}
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.Dynamic.Resource(mapping.Resource), nil
	}
	namespace := cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
	return c.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}
