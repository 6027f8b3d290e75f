package integration_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller"
	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// The API server has a limit, and so have etcd and its client, each with an answer of its own. The controller
// recognizes all of them: a job whose frozen state is not stored would be tried for ever.
func TestFrozenTrainJob_TooLargeIsRecognized(t *testing.T) {
	scheme, err := controller.Scheme(offered().API())
	if err != nil {
		t.Fatal(err)
	}
	account, err := client.New(
		as("system:serviceaccount:lockstep-system:lockstep-controller"),
		client.Options{Scheme: scheme},
	)
	if err != nil {
		t.Fatal(err)
	}
	for limit, size := range map[string]int{"etcd": 1_600_000, "its client": 2_200_000, "a request": 3_200_000} {
		content := fmt.Appendf(
			nil,
			`{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "large"}, "spec": {"file": %q}}`,
			strings.Repeat("x", size),
		)
		err := account.Create(t.Context(), &statev1alpha1.FrozenTrainJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lockstep-system", Name: fmt.Sprintf("large-%d", size)},
			Spec: statev1alpha1.FrozenTrainJobSpec{
				TrainJob:  statev1alpha1.TrainJobReference{Namespace: "default", Name: "large", UID: "large"},
				Runtime:   runtime.RawExtension{Raw: content},
				Rendering: statev1alpha1.Rendering{Renderer: 1},
			},
		})
		if !trainjob.IsTooLarge(err) {
			t.Errorf("the limit of %s: the answer to %d bytes is %v", limit, size, err)
		}
	}
}
