// Package lifecycle does the parts of an installation's life that Helm leaves out: it updates CRDs before an upgrade,
// and removes, after the uninstallation, the finalizers that would hold users' objects for ever.
package lifecycle

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-project/lockstep/manifests/chart"
)

// manager is the field manager of updated CRDs.
const manager = "lockstep-crds"

// The API server serves a CRD within a second or two.
const (
	servedEvery  = 200 * time.Millisecond
	servedWithin = 30 * time.Second
)

// definitions returns the resource of CRDs.
func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
}

// ApplyCRDs applies the CRDs of the chart with force, over existing ones, calls report for each, and waits until they
// are served.
func ApplyCRDs(ctx context.Context, client dynamic.Interface, report func(string)) error {
	crds, err := chart.CRDs()
	if err != nil {
		return fmt.Errorf("reading the CRDs: %w", err)
	}
	in := client.Resource(definitions())
	for _, crd := range crds {
		applied, err := in.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err != nil {
			return fmt.Errorf("applying CRD %s: %w", crd.GetName(), err)
		}
		report("CRD " + crd.GetName() + " has schema " + applied.GetAnnotations()[chart.SchemaAnnotation])
	}
	for _, crd := range crds {
		err := wait.PollUntilContextTimeout(
			ctx,
			servedEvery,
			servedWithin,
			true,
			func(ctx context.Context) (bool, error) {
				found, err := in.Get(ctx, crd.GetName(), metav1.GetOptions{})
				if err != nil {
					return false, fmt.Errorf("reading CRD %s: %w", crd.GetName(), err)
				}
				return Established(found), nil
			},
		)
		if err != nil {
			return fmt.Errorf("waiting for CRD %s to be served: %w", crd.GetName(), err)
		}
	}
	return nil
}

// Established reports whether the API server serves a CRD.
func Established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
