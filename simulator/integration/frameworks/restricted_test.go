package frameworks_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// In a namespace that enforces Pod Security restricted, with the runtimes of runtimes.restricted, trainings run as user
// 1000 without capabilities: by torchrun, by ssh and mpirun, by JAX's coordinator and by XGBoost's tracker.
func TestRestricted_FrameworksTrain(t *testing.T) {
	enforce(t, "restricted")
	install(t, render.Default().With("runtimes.restricted", true))
	t.Cleanup(func() {
		install(t, render.Default())
		enforce(t, "privileged")
	})
	for scenario, line := range map[string]string{
		"torch": "rank 0 of 4: sum 10", "mpi": "sum 3, hosts 2", "jax": "Sum: 3.0", "xgboost": "worker 1 of 2 has model",
		"transformers": "trained 96 steps",
	} {
		t.Run(scenario, func(t *testing.T) {
			completed(t, playAs(t, scenario, "restricted-"+scenario), line)
		})
	}
}

// enforce has the namespace of the jobs enforce a level.
func enforce(t *testing.T, level string) {
	t.Helper()
	patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"` + level + `"}}}`
	_, err := shared.Client.CoreV1().Namespaces().
		Patch(context.WithoutCancel(t.Context()), "default", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// install updates the shipped runtimes to those of a release.
func install(t *testing.T, release render.Release) {
	t.Helper()
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rendered.Objects {
		if object.GetKind() != "ClusterTrainingRuntime" {
			continue
		}
		if err := shared.Apply(context.WithoutCancel(t.Context()), object); err != nil {
			t.Fatal(err)
		}
	}
}
