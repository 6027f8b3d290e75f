package integration_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// besideJob is a suspended TrainJob of a manager; of the default one if that is empty.
func besideJob(namespace, name, manager string) string {
	if manager != "" {
		manager = "managedBy: " + manager + ", "
	}
	return `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: ` + name + `, namespace: ` + namespace + `}
spec: {suspend: true, ` + manager + `runtimeRef: {name: torch-distributed}}
`
}

// The API server evaluates the conditions with which the webhooks are rendered beside Kubeflow Trainer: with a Lockstep
// that does not answer, jobs of other controllers are updated, and only those that it has to choose among, or manages,
// wait for it.
func TestWebhooks_BesideKubeflowTrainer(t *testing.T) {
	const ours, theirs, others = "lockstep.dev/trainjob-controller", "trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"
	for kind, creates := range map[string]map[string]bool{ // whose jobs can be created without an answer
		"Mutating":   {"": false, theirs: false, ours: false},
		"Validating": {"": true, theirs: true, ours: false},
	} {
		t.Run(kind, func(t *testing.T) {
			namespace := namespaceOf(t)
			makeNamespace(t, namespace)
			for name, manager := range map[string]string{"ours": ours, "theirs": theirs, "others": others} {
				kept(t, trainJobs, besideJob(namespace, name, manager))
			}
			webhook := installBeside(t, kind+"WebhookConfiguration", namespace)
			jobs := shared.Dynamic.Resource(trainJobs).Namespace(namespace)
			update := func(name string) error {
				_, err := jobs.Patch(
					t.Context(),
					name,
					types.MergePatchType,
					[]byte(`{"metadata": {"labels": {"a": "b"}}}`),
					metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}},
				)
				return err
			}
			eventually(t, "a webhook that does not answer", func() bool {
				err := update("ours")
				return err != nil && strings.Contains(err.Error(), webhook)
			})
			for _, name := range []string{"theirs", "others"} {
				if err := update(name); err != nil {
					t.Errorf("updating %s: %v", name, err)
				}
			}
			for manager, want := range creates {
				_, err := jobs.Create(t.Context(), objectOf(t, besideJob(namespace, "new", manager)),
					metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if (err == nil) != want || err != nil && !strings.Contains(err.Error(), webhook) {
					t.Errorf("creating a job of manager %q: %v", manager, err)
				}
			}
		})
	}
}

// installBeside creates the webhook for TrainJobs of one shipped configuration, as rendered beside Kubeflow Trainer,
// for one namespace and with an address where nothing listens. It returns the webhook's name.
func installBeside(t *testing.T, kind, namespace string) string {
	t.Helper()
	rendered, err := render.Chart(render.Default().With("manage", "chosen"))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(rendered.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	configuration := rendered.Objects[at]
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	webhook, _ := webhooks[0].(map[string]any)
	webhook["clientConfig"] = map[string]any{"url": "https://127.0.0.1:1/"}
	webhook["namespaceSelector"] = map[string]any{
		"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace},
	}
	configuration.Object["webhooks"] = []any{webhook} // those of runtimes would be called for all namespaces
	configuration.SetName(configuration.GetName() + ".beside")
	configurations := shared.Dynamic.Resource(schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s",
	})
	if _, err := configurations.Create(t.Context(), configuration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // the test's own has ended by now
		if err := configurations.Delete(ctx, configuration.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	name, _ := webhook["name"].(string)
	return name
}
