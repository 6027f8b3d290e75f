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

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests"
)

// labelJobSet marks the pods that a JobSet made: the only ones that JobSet's pod webhooks need to see.
const labelJobSet = "jobset.sigs.k8s.io/jobset-name"

// install applies what has to be there before any controller starts: namespaces, CRDs, accounts and roles, webhooks.
func (c *Cluster) install(ctx context.Context) error {
	crds, err := os.ReadFile(filepath.Join(c.plan.binaries.JobSetManifests, "crd.yaml"))
	if err != nil {
		return fmt.Errorf("reading JobSet's CRD: %w", err)
	}
	if err := c.applyYAML(ctx, crds); err != nil {
		return err
	}
	for _, dir := range []string{".", "crds", "controller", "scheduler", "datacache"} {
		if err := c.applyFolder(ctx, dir); err != nil {
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
	entries, err := fs.ReadDir(manifests.Files, dir)
	if err != nil {
		return fmt.Errorf("reading manifests/%s: %w", dir, err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := manifests.Files.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading manifests/%s: %w", dir, err)
		}
		if err := c.applyYAML(ctx, content); err != nil {
			return fmt.Errorf("manifests/%s: %w", path.Join(dir, entry.Name()), err)
		}
	}
	return nil
}

// applyYAML applies every document of a YAML stream. Documents that are a component's configuration rather than an
// object of the API server (they have no name) are passed over.
func (c *Cluster) applyYAML(ctx context.Context, content []byte) error {
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
		if err := c.Apply(ctx, &object); err != nil {
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

// installWebhooks registers JobSet's webhooks at its port on loopback, which must be ready to answer by then.
func (c *Cluster) installWebhooks(ctx context.Context) error {
	content, err := os.ReadFile(filepath.Join(c.plan.binaries.JobSetManifests, "webhook.yaml"))
	if err != nil {
		return fmt.Errorf("reading JobSet's webhooks: %w", err)
	}
	base := c.plan.ports.url("https", c.plan.ports.jobsetWebhook)
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		object, err := onLoopback(document, base, c.plan.access.certPEM)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// onLoopback turns a webhook configuration that names a Service into one that names a URL, and limits the webhooks on
// pods to a JobSet's pods, as JobSet's own deployment does.
func onLoopback(document []byte, base string, authority []byte) (*unstructured.Unstructured, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, fmt.Errorf("decoding JobSet's webhooks: %w", err)
	}
	jobsetPods := &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelJobSet, Operator: metav1.LabelSelectorOpExists}},
	}
	move := func(client *admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations, to **metav1.LabelSelector) {
		url := base + *client.Service.Path
		*client = admissionv1.WebhookClientConfig{URL: &url, CABundle: authority}
		if rules[0].Resources[0] == "pods" {
			*to = jobsetPods
		}
	}
	var typed runtime.Object
	if kind.Kind == "MutatingWebhookConfiguration" {
		configuration := &admissionv1.MutatingWebhookConfiguration{}
		if err := yaml.UnmarshalStrict(document, configuration); err != nil {
			return nil, fmt.Errorf("decoding JobSet's webhooks: %w", err)
		}
		configuration.Name = "jobset-mutating-webhook-configuration"
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			move(&w.ClientConfig, w.Rules, &w.ObjectSelector)
		}
		typed = configuration
	} else {
		configuration := &admissionv1.ValidatingWebhookConfiguration{}
		if err := yaml.UnmarshalStrict(document, configuration); err != nil {
			return nil, fmt.Errorf("decoding JobSet's webhooks: %w", err)
		}
		configuration.Name = "jobset-validating-webhook-configuration"
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			move(&w.ClientConfig, w.Rules, &w.ObjectSelector)
		}
		typed = configuration
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("converting JobSet's webhooks: %w", err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
