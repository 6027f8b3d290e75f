package capture

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/redact"
)

// pageSize is the number of objects in one request.
const pageSize = 500

// Cluster is a live cluster to take snapshots of.
type Cluster struct {
	// Server is the address of its API server, for people.
	Server string
	// Version is the version that the API server gives itself.
	Version string
	// Dynamic lists objects.
	Dynamic dynamic.Interface
}

// Connect asks the API server for its version. A server that cannot be reached, or that does not know us, is bad input.
func Connect(ctx context.Context, config *rest.Config) (Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Cluster{}, unusable(config.Host, err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Cluster{}, unusable(config.Host, err)
	}
	version, err := asked.ServerVersionWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return Cluster{}, fmt.Errorf("asking %s for its version: %w", config.Host, ctx.Err())
	case err != nil:
		return Cluster{}, unusable(config.Host, err)
	}
	return Cluster{Server: config.Host, Version: version.GitVersion, Dynamic: client}, nil
}

func unusable(server string, err error) error {
	return &badinput.Error{
		Where: server,
		What:  "the API server cannot be used: " + err.Error(),
		Mend:  "check the current context of the kubeconfig",
	}
}

// list puts every object of a kind that counts into the spool, in its form in a snapshot: those of the first API that
// has any.
func (c Cluster) list(ctx context.Context, index int, k kind, into *spool) (Kind, error) {
	listed, err := c.listOf(ctx, index, k, k.resource, into)
	for _, other := range k.also {
		if err != nil || listed.Count > 0 {
			break
		}
		elsewhere, err := c.listOf(ctx, index, k, other.WithResource(k.resource.Resource), into)
		if err != nil {
			return Kind{}, err
		}
		if elsewhere.Count > 0 || listed.State == Absent {
			listed = elsewhere
		}
	}
	listed.Group, listed.Version = k.resource.Group, k.resource.Version
	return listed, err
}

// listOf is list for one API.
func (c Cluster) listOf(
	ctx context.Context, index int, k kind, resource schema.GroupVersionResource, into *spool,
) (Kind, error) {
	before := len(into.entries)
	listed, err := c.pages(ctx, index, k, resource, into)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		// The server has forgotten the state that was read: once more, of a newer one.
		into.cut(before)
		listed, err = c.pages(ctx, index, k, resource, into)
	}
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		listed.State, listed.ResourceVersion = Absent, ""
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Kind{}, &badinput.Error{
			Where: c.Server,
			What:  err.Error(),
			Mend: fmt.Sprintf("let the kubeconfig's user list %s of API group %q in all namespaces (a ClusterRole)",
				resource.Resource, resource.Group),
		}
	default:
		return Kind{}, err
	}
	listed.Count = len(into.entries) - before
	return listed, nil
}

// pages lists a kind page by page, all of one state.
func (c Cluster) pages(
	ctx context.Context, index int, k kind, resource schema.GroupVersionResource, into *spool,
) (Kind, error) {
	listed := Kind{Resource: resource.Resource, State: Captured}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.Dynamic.Resource(resource).List(ctx, options)
		if err != nil {
			return listed, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		listed.ResourceVersion = page.GetResourceVersion()
		for i := range page.Items {
			kept, err := keep(index, k, &page.Items[i], into)
			if err != nil {
				return listed, err
			}
			if !kept {
				listed.LeftOut++
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return listed, nil
		}
	}
}

// keep puts an object into the spool unless it does not count.
func keep(index int, k kind, found *unstructured.Unstructured, into *spool) (bool, error) {
	redact.Environment(found.Object)
	typed := k.blank()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, typed); err != nil {
		return false, fmt.Errorf("reading %s %s/%s: %w", k.name, found.GetNamespace(), found.GetName(), err)
	}
	if ended(typed) {
		return false, nil
	}
	normalize(k, typed)
	into.marks.learn(typed)
	if pod, ok := typed.(*corev1.Pod); ok {
		into.marks.read(pod)
	}
	text, err := json.Marshal(typed)
	if err != nil {
		return false, fmt.Errorf("printing %s %s/%s: %w", k.name, found.GetNamespace(), found.GetName(), err)
	}
	return true, into.add(index, typed, text)
}
