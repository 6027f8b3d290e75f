package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// labelJobSet marks the pods that a JobSet made: the only ones that JobSet's pod webhooks need to see.
const labelJobSet = "jobset.sigs.k8s.io/jobset-name"

// installWebhooks registers JobSet's webhooks and ours at their ports on loopback. They must be ready to answer by
// then.
func (c *Cluster) installWebhooks(ctx context.Context) error {
	content, err := os.ReadFile(filepath.Join(c.plan.binaries.JobSetManifests, "webhook.yaml"))
	if err != nil {
		return fmt.Errorf("reading JobSet's webhooks: %w", err)
	}
	authority := c.plan.access.certPEM
	configurations, err := onLoopback(content, c.plan.ports.url("https", c.plan.ports.jobsetWebhook), authority)
	if err != nil {
		return fmt.Errorf("JobSet's webhooks: %w", err)
	}
	for i, configuration := range configurations {
		if configurations[i], err = AsDeployed(configuration, "jobset", labelJobSet); err != nil {
			return fmt.Errorf("JobSet's webhooks: %w", err)
		}
	}
	for _, configuration := range configurations {
		if err := c.Apply(ctx, configuration); err != nil {
			return err
		}
	}
	if !c.plan.bare {
		if err := c.ApplyWebhooks(ctx); err != nil {
			return err
		}
	}
	return c.waitForJobSet(ctx)
}

// waitForJobSet waits until a JobSet could be created. JobSet is ready before all of its webhooks are, and the first
// job would fail.
func (c *Cluster) waitForJobSet(ctx context.Context) error {
	jobSet := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "tried"}}
	jobSet.SetGroupVersionKind(jobsetv1alpha2.GroupVersion.WithKind("JobSet"))
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "tried", Image: "none"}}}}
	jobSet.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{
		Name: "tried", Replicas: 1,
		Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}},
	}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(jobSet)
	if err != nil {
		return fmt.Errorf("converting a JobSet: %w", err)
	}
	unstructured.RemoveNestedField(content, "status")
	if err := c.waitToCreate(ctx, &unstructured.Unstructured{Object: content}); err != nil {
		return fmt.Errorf("waiting for JobSet's webhooks: %w", err)
	}
	return nil
}

// waitToCreate waits until an object could be created: until every webhook that is called for it answers and agrees.
func (c *Cluster) waitToCreate(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			_, last = resource.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return last == nil, nil
		})
	if err != nil {
		return fmt.Errorf("trying a %s: %w: %w", object.GetKind(), err, last)
	}
	return nil
}

// onLoopback reads webhook configurations that name a Service and returns them with URLs.
func onLoopback(content []byte, base string, authority []byte) ([]*unstructured.Unstructured, error) {
	var moved []*unstructured.Unstructured
	err := eachObject(content, func(object *unstructured.Unstructured) error {
		moved = append(moved, object)
		return moveToLoopback(object, base, authority)
	})
	return moved, err
}

// moveToLoopback has the webhooks of a configuration called by URL below base, with their Service's path: there is no
// network on which a Service could be reached.
func moveToLoopback(configuration *unstructured.Unstructured, base string, authority []byte) error {
	return eachWebhook(configuration, func(webhook map[string]any) error {
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return fmt.Errorf("reading the path of %s: %w", configuration.GetName(), err)
		}
		webhook["clientConfig"] = clientConfig(base+path, authority)
		return nil
	})
}

// clientConfig returns the configuration by which the API server calls a webhook by URL.
func clientConfig(url string, authority []byte) map[string]any {
	return map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(authority)}
}

// AsDeployed returns a configuration as a project's own deployment has it: with the project's name as prefix, and the
// webhooks on pods limited to pods with a label.
func AsDeployed(configuration *unstructured.Unstructured, project, label string) (*unstructured.Unstructured, error) {
	deployed := configuration.DeepCopy()
	deployed.SetName(project + "-" + configuration.GetName())
	return deployed, eachWebhook(deployed, func(webhook map[string]any) error {
		rules, _, err := unstructured.NestedSlice(webhook, "rules")
		if err != nil {
			return fmt.Errorf("reading the rules of %s: %w", deployed.GetName(), err)
		}
		if slices.ContainsFunc(rules, isAboutPods) {
			webhook["objectSelector"] = map[string]any{
				"matchExpressions": []any{map[string]any{"key": label, "operator": "Exists"}},
			}
		}
		return nil
	})
}

func isAboutPods(rule any) bool {
	fields, _ := rule.(map[string]any)
	resources, _, _ := unstructured.NestedStringSlice(fields, "resources")
	return slices.Contains(resources, "pods")
}

// eachWebhook calls change for each entry of a configuration, and stores the changes.
func eachWebhook(configuration *unstructured.Unstructured, change func(webhook map[string]any) error) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("reading %s: %w", configuration.GetName(), err)
	}
	for i, entry := range webhooks {
		webhook, ok := entry.(map[string]any)
		if !ok {
			return fmt.Errorf("reading %s: webhook %d is no object", configuration.GetName(), i)
		}
		if err := change(webhook); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
		return fmt.Errorf("writing %s: %w", configuration.GetName(), err)
	}
	return nil
}
