package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-project/lockstep/manifests"
	"github.com/lockstep-project/lockstep/simulator/cluster/nvlink"
)

// install applies what has to be there before any controller starts: namespaces, CRDs, accounts and roles, runtimes.
func (c *Cluster) install(ctx context.Context) error {
	crds, err := os.ReadFile(filepath.Join(c.plan.binaries.JobSetManifests, "crd.yaml"))
	if err != nil {
		return fmt.Errorf("reading JobSet's CRD: %w", err)
	}
	if err := c.applyYAML(ctx, crds); err != nil {
		return err
	}
	laboratory := []string{driversRole}
	if c.plan.servesMutatingPolicies() {
		laboratory = append(laboratory, defaultAccount)
	}
	for _, own := range laboratory {
		if err := c.applyYAML(ctx, []byte(own)); err != nil {
			return err
		}
	}
	for _, dir := range []string{".", "crds", "gangs", "controller", "access", "scheduler", "datacache"} {
		if err := c.applyFolder(ctx, dir); err != nil {
			return err
		}
	}
	if c.plan.cliques {
		if err := c.applyYAML(ctx, nvlink.Manifests); err != nil {
			return err
		}
	}
	if err := c.waitForCRDs(ctx); err != nil {
		return err
	}
	return c.applyFolder(ctx, "runtimes")
}

// applyFolder applies the Kubernetes objects of one folder of manifests in the order of their file names.
func (c *Cluster) applyFolder(ctx context.Context, dir string) error {
	return eachFile(manifests.Files, dir, func(content []byte) error { return c.applyYAML(ctx, content) })
}

// eachFile calls back for the YAML files of one folder of manifests in the order of their names.
func eachFile(files fs.FS, dir string, use func(content []byte) error) error {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return fmt.Errorf("reading manifests/%s: %w", dir, err)
	}
	for _, entry := range entries {
		if entry.IsDir() || path.Ext(entry.Name()) != ".yaml" {
			continue
		}
		content, err := fs.ReadFile(files, path.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading manifests/%s: %w", dir, err)
		}
		if err := use(content); err != nil {
			return fmt.Errorf("manifests/%s: %w", path.Join(dir, entry.Name()), err)
		}
	}
	return nil
}

// applyYAML applies every document of a YAML stream. Documents that are a component's configuration rather than an
// object of the API server (they have no name) are passed over.
func (c *Cluster) applyYAML(ctx context.Context, content []byte) error {
	return eachObject(content, func(object *unstructured.Unstructured) error { return c.Apply(ctx, object) })
}

// eachObject calls back for the objects of a YAML stream, in order.
func eachObject(content []byte, use func(*unstructured.Unstructured) error) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decoding: %w", err)
		}
		if object.GetName() == "" {
			continue
		}
		if err := use(&object); err != nil {
			return err
		}
	}
}

// waitForCRDs waits until the API server serves every CRD that was applied.
func (c *Cluster) waitForCRDs(ctx context.Context) error {
	crds := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			list, err := crds.List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, fmt.Errorf("listing CRDs: %w", err)
			}
			for i := range list.Items {
				if !hasTrueCondition(&list.Items[i], "Established") {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the CRDs to be served: %w", err)
	}
	return nil
}

func hasTrueCondition(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if ok && condition["type"] == kind && condition["status"] == "True" {
			return true
		}
	}
	return false
}
