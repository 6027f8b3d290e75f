package controller_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/manifests/chart"
)

// Helm does not upgrade CRDs, so a controller can meet a cluster that does not know the kind of its state.
func TestServesState_NamesTheMissingCRD(t *testing.T) {
	client := fake.NewClientset()
	if err := controller.ServesState(client); !errors.Is(err, controller.ErrNoState) ||
		!strings.Contains(err.Error(), "manifests/chart/crds") {
		t.Errorf("without the kind: %v", err)
	}
	client.Resources = []*metav1.APIResourceList{{
		GroupVersion: "state.lockstep.dev/v1alpha1", APIResources: []metav1.APIResource{{Name: "frozentrainjobs"}},
	}}
	if err := controller.ServesState(client); err != nil {
		t.Errorf("with it: %v", err)
	}
}

// The policy that restricts the controller to the objects of jobs lists each name that a job's files and keys can have,
// and no other.
func TestBelongings_AreNamedAsThePlannerNamesThem(t *testing.T) {
	job := &trainerv1alpha1.TrainJob{}
	// For a job without a name, the names are the endings.
	want := append(slices.Concat(plan.ConfigNames(job), plan.SecretNames(job, "")), resolve.CopyName(job))
	slices.Sort(want)
	content, err := chart.Files.ReadFile("templates/policies/belongings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(content), "- name: endings\n    expression: \"")
	list, _, _ := strings.Cut(after, "\"\n")
	var got []string
	if err := yaml.Unmarshal([]byte(list), &got); err != nil || !found {
		t.Fatalf("the endings in the policy: %q (%v)", list, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the policy knows %v, the planner %v", got, want)
	}
}
