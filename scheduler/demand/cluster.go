package demand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

const (
	autoscaling = "autoscaling.x-k8s.io"
	kind        = "ProvisioningRequest"
	plural      = "provisioningrequests"

	// managedBy is the label of the objects that are written here.
	managedBy = "app.kubernetes.io/managed-by"
	manager   = "lockstep-scheduler"

	// discoverEvery is the pause between two questions whether ProvisioningRequests are served.
	discoverEvery = time.Minute
)

// Cluster has the clients of a Requester.
type Cluster struct {
	// Client writes pod templates, Dynamic ProvisioningRequests.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// API has the PodGroups, which own the written objects.
	API   gangapi.API
	Clock clock.WithTicker
}

// await returns the version in which ProvisioningRequests are served, once they are; false if the context ends before.
func (c Cluster) await(ctx context.Context) (string, bool) {
	log := klog.FromContext(ctx)
	ticker := c.Clock.NewTicker(discoverEvery)
	defer ticker.Stop()
	for said := false; ; said = true {
		version, err := c.served()
		switch {
		case err == nil && version != "":
			return version, true
		case err != nil:
			log.Error(err, "Gangs that wait request no nodes yet; asking again")
		case !said:
			log.Info(
				"Gangs that wait request no nodes: the API server serves no ProvisioningRequests; asking again every minute",
			)
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-ticker.C():
		}
	}
}

// served returns the version in which ProvisioningRequests are served, the newest that is known; "" for none.
func (c Cluster) served() (string, error) {
	for _, version := range []string{"v1", "v1beta1"} {
		found, err := c.Client.Discovery().ServerResourcesForGroupVersion(autoscaling + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("asking whether ProvisioningRequests are served: %w", err)
		}
		if slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
			return version, nil
		}
	}
	return "", nil
}

// create writes the templates of a request, then the request. An existing object has the same content, since its name
// is a digest.
func (c Cluster) create(
	ctx context.Context, group *schedulingv1beta1.PodGroup, request Request, resource schema.GroupVersionResource,
) error {
	meta := metav1.ObjectMeta{
		Namespace: group.Namespace, Name: request.Name, Labels: map[string]string{managedBy: manager},
		OwnerReferences: []metav1.OwnerReference{
			{
				APIVersion: c.API.Version().
					String(),
				Kind:       gangapi.Kind,
				Name:       group.Name,
				UID:        group.UID,
				Controller: new(true),
			},
		},
	}
	var sets []any
	for i, set := range request.Sets {
		template := &corev1.PodTemplate{ObjectMeta: meta, Template: set.Template}
		template.Name = request.Name + "-" + strconv.Itoa(i)
		_, err := c.Client.CoreV1().PodTemplates(group.Namespace).Create(ctx, template, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating PodTemplate %s: %w", template.Name, err)
		}
		sets = append(sets, map[string]any{
			"count": int64(set.Count), "podTemplateRef": map[string]any{"name": template.Name},
		})
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"provisioningClassName": request.Class, "podSets": sets},
	}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	object.SetNamespace(meta.Namespace)
	object.SetName(meta.Name)
	object.SetLabels(meta.Labels)
	object.SetOwnerReferences(meta.OwnerReferences)
	_, err := c.Dynamic.Resource(resource).Namespace(group.Namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ProvisioningRequest %s: %w", request.Name, err)
	}
	return nil
}

// delete deletes a request, then its templates.
func (c Cluster) delete(
	ctx context.Context, request *unstructured.Unstructured, resource schema.GroupVersionResource,
) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(request.GetUID())}}
	err := c.Dynamic.Resource(resource).Namespace(request.GetNamespace()).Delete(ctx, request.GetName(), options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ProvisioningRequest %s: %w", request.GetName(), err)
	}
	sets, _, err := unstructured.NestedSlice(request.Object, "spec", "podSets")
	if err != nil {
		return fmt.Errorf("reading ProvisioningRequest %s: %w", request.GetName(), err)
	}
	for i := range sets {
		name := request.GetName() + "-" + strconv.Itoa(i)
		err := c.Client.CoreV1().PodTemplates(request.GetNamespace()).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting PodTemplate %s: %w", name, err)
		}
	}
	return nil
}

// requests are the ProvisioningRequests of gangs.
type requests struct {
	resource schema.GroupVersionResource
	indexer  cache.Indexer
	synced   cache.InformerSynced
}

const byGroup = "lockstep.dev/pod-group"

// follow begins to follow the ProvisioningRequests of gangs. changed is called with the key of the PodGroup of each
// that is deleted by others, or that was there before.
func follow(ctx context.Context, c Cluster, version string, changed func(key string)) (*requests, error) {
	resource := schema.GroupVersionResource{Group: autoscaling, Version: version, Resource: plural}
	informer := dynamicinformer.NewFilteredDynamicInformer(c.Dynamic, resource, metav1.NamespaceAll, 0,
		cache.Indexers{byGroup: func(object any) ([]string, error) { return groupsOf(object, c.API), nil }},
		func(options *metav1.ListOptions) { options.LabelSelector = managedBy + "=" + manager },
	).Informer()
	happened := func(object any) {
		if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = missed.Obj
		}
		for _, key := range groupsOf(object, c.API) {
			changed(key)
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: happened, DeleteFunc: happened})
	if err := errors.Join(err, informer.SetTransform(withoutStatus)); err != nil {
		return nil, fmt.Errorf("watching ProvisioningRequests: %w", err)
	}
	go informer.RunWithContext(ctx)
	return &requests{resource: resource, indexer: informer.GetIndexer(), synced: handler.HasSynced}, nil
}

// of returns the requests of a gang by its key, in the order of their names.
func (r *requests) of(key string) []*unstructured.Unstructured {
	objects, err := r.indexer.ByIndex(byGroup, key)
	if err != nil {
		return nil // the index is made with the informer
	}
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if request, ok := object.(*unstructured.Unstructured); ok {
			found = append(found, request)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	return found
}

// groupsOf returns the key of the PodGroup that owns a request.
func groupsOf(object any, api gangapi.API) []string {
	request, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	for _, owner := range request.GetOwnerReferences() {
		if owner.Kind == gangapi.Kind && owner.APIVersion == api.Version().String() {
			return []string{request.GetNamespace() + "/" + owner.Name}
		}
	}
	return nil
}

// withoutStatus drops the fields of a request that are not needed here.
func withoutStatus(object any) (any, error) {
	if request, ok := object.(*unstructured.Unstructured); ok {
		request.SetManagedFields(nil)
		delete(request.Object, "status")
	}
	return object, nil
}
