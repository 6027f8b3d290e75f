package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// TrainerNamespace is the namespace of Kubeflow Trainer.
	TrainerNamespace = "kubeflow-system"
	// trainerAccount is its ServiceAccount there, and the name of its Service.
	trainerAccount = "kubeflow-trainer-controller-manager"
)

// errNoTrainer indicates that the cluster runs no Kubeflow Trainer.
var errNoTrainer = errors.New("no Kubeflow Trainer runs")

// Trainer is a release of Kubeflow Trainer: its manager, and manifests/base of its module.
type Trainer struct {
	Version, Manager, Manifests string
}

func (p plan) trainer(release Trainer) component {
	return component{
		name: "kubeflow-trainer", version: release.Version, binary: release.Manager,
		args: []string{
			"--kubeconfig=" + p.access.trainerKubeconfig, "--config=" + p.state.path("config", "trainer.yaml"),
			"--zap-log-level=2",
		},
		// Its webhooks read their certificate from a fixed folder below that of temporary files.
		env:    []string{"TMPDIR=" + p.state.path("tmp")},
		ports:  []int{p.ports.trainerHealth, p.ports.trainerWebhook},
		health: p.ports.url("http", p.ports.trainerHealth) + "/readyz",
	}
}

// trainerConfig is as its deployment has it, but for addresses, the certificate, which we bring, and the namespace of
// its lease, which outside of a pod it does not know.
func (p plan) trainerConfig() string {
	return fmt.Sprintf(`apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  resourceNamespace: %s
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d}
certManagement: {enable: false}
clientConnection: {qps: 50, burst: 100}
`, TrainerNamespace, p.ports.trainerHealth, p.ports.trainerWebhook)
}

// StartTrainer starts a release of Kubeflow Trainer under its own roles, and returns when it is ready. Its CRDs and
// webhooks are the caller's.
func (c *Cluster) StartTrainer(ctx context.Context, release Trainer) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": TrainerNamespace},
	}}
	if err := c.Apply(ctx, namespace); err != nil {
		return err
	}
	for _, file := range []string{"role.yaml", "role_binding.yaml", "service_account.yaml"} {
		err := c.trainerObjects(release, filepath.Join("rbac", file), func(object *unstructured.Unstructured) error {
			return c.Apply(ctx, inTrainerNamespace(object))
		})
		if err != nil {
			return err
		}
	}
	if _, err := c.plan.state.write([]byte(c.plan.trainerConfig()), "config", "trainer.yaml"); err != nil {
		return err
	}
	serving := c.plan.state.path("tmp", "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(serving, 0o755); err != nil {
		return fmt.Errorf("creating the folder of Kubeflow Trainer's certificate: %w", err)
	}
	for from, to := range map[string]string{c.plan.access.certFile: "tls.crt", c.plan.access.keyFile: "tls.key"} {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(serving, to), content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copying the certificate: %w", err)
		}
	}
	return c.run(ctx, c.plan.trainer(release))
}

// StopTrainer stops Kubeflow Trainer. Its webhooks stay registered.
func (c *Cluster) StopTrainer(ctx context.Context) error {
	old := c.dismiss(c.plan.trainer(Trainer{}).name)
	if old == nil {
		return errNoTrainer
	}
	old.stop(ctx)
	return nil
}

// ApplyTrainer applies the objects of a folder of a release, "crds" or "runtimes", as kubectl apply --server-side
// --force-conflicts does.
func (c *Cluster) ApplyTrainer(ctx context.Context, release Trainer, folder string) error {
	files, err := filepath.Glob(filepath.Join(release.Manifests, folder, "*.yaml"))
	if err != nil {
		return fmt.Errorf("listing %s: %w", folder, err)
	}
	for _, file := range files {
		err := c.trainerObjects(
			release,
			filepath.Join(folder, filepath.Base(file)),
			func(object *unstructured.Unstructured) error {
				return c.Apply(ctx, object)
			},
		)
		if err != nil {
			return err
		}
	}
	return c.waitForCRDs(ctx)
}

// ApplyTrainerWebhooks registers the webhooks of a release under the names that its deployment gives them.
func (c *Cluster) ApplyTrainerWebhooks(ctx context.Context, release Trainer) error {
	names := map[string]string{
		"MutatingWebhookConfiguration":   "defaulter.trainer.kubeflow.org",
		"ValidatingWebhookConfiguration": "validator.trainer.kubeflow.org",
	}
	return c.trainerObjects(
		release,
		filepath.Join("webhook", "manifests.yaml"),
		func(object *unstructured.Unstructured) error {
			object.SetName(names[object.GetKind()])
			base := c.plan.ports.url("https", c.plan.ports.trainerWebhook)
			if err := moveToLoopback(object, base, c.plan.access.certPEM); err != nil {
				return err
			}
			return c.Apply(ctx, object)
		},
	)
}

// ApplyWebhooks registers Lockstep's webhooks.
func (c *Cluster) ApplyWebhooks(ctx context.Context) error {
	return c.applyWebhooks(ctx, c.plan.webhooks())
}

// applyWebhooks registers webhook configurations of Lockstep's, at the port of the controller.
func (c *Cluster) applyWebhooks(ctx context.Context, configurations []*unstructured.Unstructured) error {
	for _, configuration := range configurations {
		moved := configuration.DeepCopy()
		base := c.plan.ports.url("https", c.plan.ports.controllerWebhook)
		if err := moveToLoopback(moved, base, c.plan.access.certPEM); err != nil {
			return err
		}
		if err := c.Apply(ctx, moved); err != nil {
			return err
		}
	}
	return nil
}

// DeleteWebhooks deletes a mutating and a validating webhook configuration; those that do not exist are no error.
func (c *Cluster) DeleteWebhooks(ctx context.Context, mutating, validating string) error {
	registrations := c.Client.AdmissionregistrationV1()
	for _, err := range []error{
		registrations.MutatingWebhookConfigurations().Delete(ctx, mutating, metav1.DeleteOptions{}),
		registrations.ValidatingWebhookConfigurations().Delete(ctx, validating, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting webhooks: %w", err)
		}
	}
	return nil
}

// trainerObjects calls back for the objects of a file of a release's manifests.
func (*Cluster) trainerObjects(release Trainer, file string, use func(*unstructured.Unstructured) error) error {
	content, err := os.ReadFile(filepath.Join(release.Manifests, file))
	if err != nil {
		return fmt.Errorf("reading Kubeflow Trainer's manifests: %w", err)
	}
	return eachObject(content, use)
}

// inTrainerNamespace puts an object of Kubeflow Trainer's roles where its deployment puts it.
func inTrainerNamespace(object *unstructured.Unstructured) *unstructured.Unstructured {
	placed := object.DeepCopy()
	switch placed.GetKind() {
	case "ServiceAccount":
		placed.SetNamespace(TrainerNamespace)
	case "ClusterRoleBinding":
		subjects, _, _ := unstructured.NestedSlice(placed.Object, "subjects")
		for _, subject := range subjects {
			if fields, ok := subject.(map[string]any); ok {
				fields["namespace"] = TrainerNamespace
			}
		}
		_ = unstructured.SetNestedSlice(placed.Object, subjects, "subjects") // it was read as one
	}
	return placed
}
