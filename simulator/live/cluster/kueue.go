package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// kueueNamespace is Kueue's namespace.
	kueueNamespace = "kueue-system"
	// kueueService and kueueSecret are Kueue's names of the Service of its certificate, and of the Secret that stores
	// it.
	kueueService = "kueue-webhook-service"
	kueueSecret  = "kueue-webhook-server-cert"
)

func kueueServing() Serving {
	return Serving{Namespace: kueueNamespace, Secret: kueueSecret, Service: kueueService, Authority: "kueue-ca"}
}

func (p plan) kueue() component {
	return component{
		name: "kueue", version: moduleVersion(p.binaries.Kueue, "sigs.k8s.io/kueue"), binary: p.binaries.Kueue,
		args: []string{
			"--kubeconfig=" + p.access.kueueKubeconfig, "--config=" + p.state.path("config", "kueue.yaml"),
			// Its server of pending workloads is an aggregated API, which would need a network and a folder below /.
			"--feature-gates=VisibilityOnDemand=false", "--zap-log-level=2",
		},
		ports:  []int{p.ports.kueueHealth, p.ports.kueueWebhook},
		health: p.ports.url("http", p.ports.kueueHealth) + "/readyz",
	}
}

// kueueConfig has Kueue judge the jobs that name a queue, and leave the others alone; settings win over its fields. Its
// certificate management is on, because without it Kueue reads files below /etc; it finds a certificate that has
// nothing to be managed.
func (p plan) kueueConfig(settings map[string]any) ([]byte, error) {
	configuration := map[string]any{
		"apiVersion":     "config.kueue.x-k8s.io/v1beta2",
		"kind":           "Configuration",
		"namespace":      kueueNamespace,
		"leaderElection": map[string]any{"leaderElect": false},
		"health":         map[string]any{"healthProbeBindAddress": loopback(p.ports.kueueHealth)},
		"metrics":        map[string]any{"bindAddress": "0"},
		"webhook": map[string]any{
			"host":    "127.0.0.1",
			"port":    p.ports.kueueWebhook,
			"certDir": p.kueueCertDir(),
		},
		"internalCertManagement": map[string]any{
			"enable": true, "webhookServiceName": kueueService, "webhookSecretName": kueueSecret,
		},
		"clientConnection":           map[string]any{"qps": 500, "burst": 1000},
		"manageJobsWithoutQueueName": false,
		"waitForPodsReady":           map[string]any{"timeout": "24h", "recoveryTimeout": "24h"},
		"integrations":               map[string]any{"frameworks": p.kueueKinds()},
	}
	maps.Copy(configuration, settings)
	content, err := yaml.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("printing Kueue's configuration: %w", err)
	}
	return content, nil
}

// RestartKueue stops Kueue and starts it again with settings of its configuration file that win over the usual ones. It
// returns when Kueue answers for TrainJobs.
func (c *Cluster) RestartKueue(ctx context.Context, settings map[string]any) error {
	if err := c.configureKueue(settings); err != nil {
		return err
	}
	if err := c.replace(ctx, c.plan.kueue()); err != nil {
		return err
	}
	return c.waitForKueue(ctx)
}

func (c *Cluster) configureKueue(settings map[string]any) error {
	content, err := c.plan.kueueConfig(settings)
	if err != nil {
		return err
	}
	_, err = c.plan.state.write(content, "config", "kueue.yaml")
	return err
}

// kueueKinds are the kinds of jobs that Kueue manages, as its configuration names them.
func (p plan) kueueKinds() []string {
	kinds := []string{"trainer.kubeflow.org/trainjob", "jobset.x-k8s.io/jobset", "batch/job"}
	if p.kueuePods {
		kinds = append(kinds, "pod")
	}
	return kinds
}

// kueueGroups are the API groups of the objects about which Kueue's webhooks are called.
func (p plan) kueueGroups() []string {
	groups := []string{"kueue.x-k8s.io", "trainer.kubeflow.org", "jobset.x-k8s.io", "batch"}
	if p.kueuePods {
		groups = append(groups, "")
	}
	return groups
}

func (p plan) kueueCertDir() string { return p.state.path("pki", "kueue") }

// startKueue installs Kueue and starts it, and returns when it answers for TrainJobs. The controllers run already.
func (c *Cluster) startKueue(ctx context.Context) error {
	made, err := newKeys(kueueServing())
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.plan.kueueCertDir(), 0o755); err != nil {
		return fmt.Errorf("creating the folder of Kueue's certificate: %w", err)
	}
	for _, name := range []string{fileCert, fileKey} {
		if _, err := c.plan.state.write(made[name], "pki", "kueue", name); err != nil {
			return err
		}
	}
	if err := c.configureKueue(nil); err != nil {
		return err
	}
	if err := c.installKueue(ctx, made); err != nil {
		return err
	}
	if err := c.run(ctx, c.plan.kueue()); err != nil {
		return err
	}
	return c.waitForKueue(ctx)
}

// installKueue applies the objects that Kueue requires: its CRDs, its roles, its certificate and its webhooks. It does
// not become ready before it has seen the last two.
func (c *Cluster) installKueue(ctx context.Context, made keys) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": kueueNamespace},
	}}
	if err := c.Apply(ctx, namespace); err != nil {
		return err
	}
	base := c.plan.ports.url("https", c.plan.ports.kueueWebhook)
	for _, file := range []string{kueueCRDs, kueueRoles, kueueWebhooks} {
		content, err := os.ReadFile(filepath.Join(c.plan.binaries.KueueManifests, file))
		if err != nil {
			return fmt.Errorf("reading Kueue's manifests: %w", err)
		}
		objects, err := asKueueDeploys(content, base, made[fileAuthority], c.plan.kueueGroups())
		if err != nil {
			return fmt.Errorf("reading Kueue's %s: %w", file, err)
		}
		for _, object := range objects {
			if err := c.Apply(ctx, object); err != nil {
				return err
			}
		}
	}
	if err := c.Apply(ctx, made.secret(kueueServing())); err != nil {
		return err
	}
	return c.waitForCRDs(ctx)
}

// waitForKueue waits until a TrainJob of a runtime that ships could be created: Kueue refuses one whose runtime it has
// not seen yet.
func (c *Cluster) waitForKueue(ctx context.Context) error {
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": "tried"},
		"spec":     map[string]any{"runtimeRef": map[string]any{"name": "plain"}},
	}}
	if err := c.waitToCreate(ctx, job); err != nil {
		return fmt.Errorf("waiting for Kueue's webhooks: %w", err)
	}
	return nil
}
