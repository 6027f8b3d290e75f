package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// TestJobPages_Pods renders the sample of each page about a framework: the page has the commands and the environment of
// its pods.
func TestJobPages_Pods(t *testing.T) {
	for name, sample := range map[string]string{
		"torch": "torch-one-clique", "torchtune": "torchtune", "jax": "jax", "xgboost": "xgboost", "mpi": "deepspeed",
		"flux": "flux", "plain": "plain",
	} {
		t.Run(name, func(t *testing.T) {
			shown := page.Page{
				File:   "docs/jobs/" + name + ".md",
				Marker: "go test ./simulator/checks/docs",
				Write:  *rewrite,
				Mend:   mend,
			}
			shown.HasOnly(t, map[string]string{"pods": pods(rendered(t, sample))})
		})
	}
}

// rendered returns the JobSet of the first TrainJob of a sample on the shipped runtime that it names.
func rendered(t *testing.T, sample string) *jobsetv1alpha2.JobSet {
	t.Helper()
	var (
		job     trainerv1alpha1.TrainJob
		shipped trainerv1alpha1.ClusterTrainingRuntime
	)
	read(t, "manifests/samples/"+sample+".yaml", &job)
	read(t, "manifests/chart/runtimes/"+job.Spec.RuntimeRef.Name+".yaml", &shipped)
	runtime := plan.Runtime{Kind: shipped.Kind, Name: shipped.Name, Spec: shipped.Spec}
	planned, err := plan.New(&job, runtime, plan.Options{Gang: true})
	if err != nil {
		t.Fatal(err)
	}
	return planned.JobSet
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(content), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), into); err != nil {
		t.Fatal(err)
	}
}

// pods prints the first container of each kind of pod: its command and its environment.
func pods(set *jobsetv1alpha2.JobSet) string {
	var out strings.Builder
	for _, replicated := range set.Spec.ReplicatedJobs {
		spec := replicated.Template.Spec
		container := spec.Template.Spec.Containers[0]
		count := max(1, replicated.Replicas) * ptr.Deref(spec.Parallelism, 1) // the API servers' defaults
		_, _ = fmt.Fprintf(&out, "%s: %d of container %s\n", replicated.Name, count, container.Name)
		if command := append(container.Command, container.Args...); len(command) > 0 {
			_, _ = fmt.Fprintf(&out, "  %s\n", oneLine(command))
		}
		for _, variable := range container.Env {
			_, _ = fmt.Fprintf(&out, "  %s=%s\n", variable.Name, value(variable))
		}
	}
	return out.String()
}

// oneLine joins words; a script in them is shown by its first line.
func oneLine(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		first, _, more := strings.Cut(strings.TrimSpace(word), "\n")
		if more {
			first += " …"
		}
		shown[i] = first
	}
	return strings.Join(shown, " ")
}

func value(variable corev1.EnvVar) string {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value
	case from.FieldRef != nil:
		return "<" + from.FieldRef.FieldPath + ">"
	case from.SecretKeyRef != nil:
		return "<key " + from.SecretKeyRef.Key + " of Secret " + from.SecretKeyRef.Name + ">"
	default:
		return "<another source>"
	}
}
