package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// perPage is the number of groups per list request.
const perPage = 500

// LetGo removes Lockstep's finalizer from all PodGroups of the served APIs, and reports a count for each API. Otherwise
// only the scheduler removes it: after an uninstall neither a PodGroup nor its namespace could be deleted. Pods are not
// touched.
func LetGo(ctx context.Context, client dynamic.Interface, report func(string)) error {
	for _, api := range []gangapi.API{gangapi.Resources, gangapi.Native, gangapi.NativeV1} {
		freed, err := letGo(ctx, client.Resource(api.Resource()))
		if apierrors.IsNotFound(err) {
			continue // not served
		}
		if err != nil {
			return fmt.Errorf("PodGroups of %s: %w", api.Version(), err)
		}
		report(fmt.Sprintf("PodGroups of %s: %d had the finalizer", api.Version(), freed))
	}
	return nil
}

// letGo removes the finalizer from the groups of one API, and returns the number of groups that had it.
func letGo(ctx context.Context, groups dynamic.NamespaceableResourceInterface) (int, error) {
	freed, next := 0, ""
	for {
		page, err := groups.List(ctx, metav1.ListOptions{Limit: perPage, Continue: next})
		if err != nil {
			return freed, err //nolint:wrapcheck // the caller says of what
		}
		for i := range page.Items {
			if !slices.Contains(page.Items[i].GetFinalizers(), gangapi.Finalizer) {
				continue
			}
			if err := free(ctx, groups, &page.Items[i]); err != nil {
				return freed, err
			}
			freed++
		}
		if next = page.GetContinue(); next == "" {
			return freed, nil
		}
	}
}

// free takes the finalizer off one group. A group that changed meanwhile is read again.
func free(ctx context.Context, groups dynamic.NamespaceableResourceInterface, group *unstructured.Unstructured) error {
	in := groups.Namespace(group.GetNamespace())
	for {
		kept := slices.DeleteFunc(group.GetFinalizers(), func(f string) bool { return f == gangapi.Finalizer })
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"finalizers": kept, "uid": group.GetUID(), "resourceVersion": group.GetResourceVersion(),
		}})
		if err != nil {
			return fmt.Errorf("encoding a patch: %w", err)
		}
		_, err = in.Patch(ctx, group.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("patching %s/%s: %w", group.GetNamespace(), group.GetName(), err)
		}
		if group, err = in.Get(ctx, group.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading %s/%s again: %w", group.GetNamespace(), group.GetName(), err)
		}
	}
}
