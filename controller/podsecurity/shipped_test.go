package podsecurity_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// With runtimes.restricted a restricted namespace admits Lockstep's pods of each shipped runtime, with the controller's
// additions. Without it the same namespace refuses some pods of each.
func TestShippedRuntimes_Restricted(t *testing.T) {
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	for _, value := range []bool{true, false} {
		runtimes := shipped(t, value)
		if len(runtimes) < 12 {
			t.Fatalf("%d runtimes", len(runtimes))
		}
		for _, of := range runtimes {
			job := &trainerv1alpha1.TrainJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"},
				Spec: trainerv1alpha1.TrainJobSpec{
					RuntimeRef: trainerv1alpha1.RuntimeRef{Name: of.Name},
					Trainer:    &trainerv1alpha1.Trainer{NumNodes: new(int32(3))},
				},
			}
			planned, err := plan.New(job, plan.Runtime{Name: of.Name, Spec: of.Spec}, plan.Options{Gang: true})
			if err != nil {
				t.Fatalf("%s: %v", of.Name, err)
			}
			got := refusedOf(t, restricted, planned.JobSet)
			if value && len(got) > 0 || !value && len(got) == 0 {
				t.Errorf("restricted: %t: of %s is refused: %v", value, of.Name, got)
			}
		}
	}
}

// With the RuntimePatch on the page, a restricted namespace admits the pods of a runtime without a security context.
func TestPodSecurityPage_RuntimePatch(t *testing.T) {
	page, err := os.ReadFile("../../docs/pod-security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(after, "```")
	job := &trainerv1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}}
	if err := yaml.UnmarshalStrict([]byte(text), &job.Spec); err != nil || !found {
		t.Fatalf("the page has no patch (%t): %v", found, err)
	}
	runtimes := shipped(t, false)
	at := slices.IndexFunc(runtimes, func(of trainerv1alpha1.ClusterTrainingRuntime) bool {
		return of.Name == "torch-distributed"
	})
	planned, err := plan.New(job, plan.Runtime{Name: runtimes[at].Name, Spec: runtimes[at].Spec}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := refusedOf(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, planned.JobSet)
	if len(got) > 0 {
		t.Errorf("it is refused: %v", got)
	}
}

// shipped returns the runtimes of the chart.
func shipped(t *testing.T, restricted bool) []trainerv1alpha1.ClusterTrainingRuntime {
	t.Helper()
	rendered, err := render.Chart(render.Default().With("runtimes.restricted", restricted))
	if err != nil {
		t.Fatal(err)
	}
	var out []trainerv1alpha1.ClusterTrainingRuntime
	for _, object := range rendered.Objects {
		if object.GetKind() != "ClusterTrainingRuntime" {
			continue
		}
		var of trainerv1alpha1.ClusterTrainingRuntime
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &of); err != nil {
			t.Fatal(err)
		}
		out = append(out, of)
	}
	return out
}
