package integration_test

import (
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// warnings are those that a client got.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// A user who misspells a resource gets a warning when submitting the job, which would wait for a resource that may
// never exist.
func TestWarnings_ResourcesThatNoNodeOffers(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	heard := &warnings{}
	config := rest.CopyConfig(shared.Admin)
	config.WarningHandler = heard
	jobs := dynamic.NewForConfigOrDie(config).Resource(trainJobs).Namespace(namespace)
	for name, resource := range map[string]string{"right": "nvidia.com/gpu", "wrong": "nvidia.com/gpuu"} {
		job := objectOf(t, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: `+name+`, namespace: `+namespace+`}
spec:
  suspend: true
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {`+resource+`: 1}}}
`)
		if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"nvidia.com/gpuu: no node of this cluster offers it; the job waits until one does"}
	if !slices.Equal(heard.texts, want) {
		t.Errorf("warned %q, want %q", heard.texts, want)
	}
}
