package migrate_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	sigsjson "sigs.k8s.io/json"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/migrate"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestMigrate_ResultsAreValid decodes every resulting object of our group strictly into its type, and plans every
// TrainJob with its runtime, as a gang and as none.
func TestMigrate_ResultsAreValid(t *testing.T) {
	planned := map[string]bool{}
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			result, err := migrate.Documents(readDocuments(t, filepath.Join(dir, "in.yaml")))
			if err != nil {
				return // want-error.txt has the reason
			}
			runtimes := map[string]plan.Runtime{}
			var jobs []*trainerv1alpha1.TrainJob
			for _, object := range result.Objects {
				switch object["kind"] {
				case "TrainJob":
					job := &trainerv1alpha1.TrainJob{}
					strictly(t, object, job)
					jobs = append(jobs, job)
				case "TrainingRuntime", "ClusterTrainingRuntime":
					rt := &trainerv1alpha1.ClusterTrainingRuntime{}
					strictly(t, object, rt)
					runtimes[rt.Name] = plan.Runtime{
						Kind:        rt.Kind,
						Name:        rt.Name,
						Annotations: rt.Annotations,
						Spec:        rt.Spec,
					}
				}
			}
			for _, job := range jobs {
				rt, here := runtimes[job.Spec.RuntimeRef.Name]
				if !here {
					continue
				}
				if job.Name == "" { // the API server makes one of generateName
					job.Name = job.GenerateName + "x7k2p"
				}
				for _, gang := range []bool{false, true} {
					made, err := plan.New(job, rt, plan.Options{Gang: gang})
					if err != nil {
						t.Fatalf("gang %t: %v", gang, err)
					}
					planned[made.Framework] = true
				}
			}
		})
	}
	for _, framework := range []string{"torch", "jax", "xgboost", "mpi"} {
		if !planned[framework] {
			t.Errorf("no case was planned for %s", framework)
		}
	}
}

func strictly(t *testing.T, object map[string]any, into any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := sigsjson.UnmarshalStrict(text, into, sigsjson.DisallowUnknownFields)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("%v %v\n%s", err, unknown, text)
	}
	if object["status"] != nil {
		t.Errorf("a status came out:\n%s", text)
	}
	for _, noise := range []string{`creationTimestamp`, `:null`, `"resources":{}`, `"metadata":{}`} {
		if strings.Contains(string(text), noise) {
			t.Errorf("%s is in what came out:\n%s", noise, text)
		}
	}
}
