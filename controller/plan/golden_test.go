package plan_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// secretSuffix stands for what is randomly generated for each job.
const secretSuffix = "random"

var rewrite = flag.Bool("rewrite", false, "write what came out over what was wanted")

// TestGolden plans each case of testdata and compares with what is wanted: objects, or the text of a refusal. The
// inputs must come out as they went in.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			job, rt, options := readCase(t, dir)
			jobBefore, specBefore := job.DeepCopy(), rt.Spec.DeepCopy()
			planned, err := plan.New(job, rt, options)
			if diff := cmp.Diff(jobBefore, job); diff != "" {
				t.Errorf("the TrainJob was changed:\n%s", diff)
			}
			if diff := cmp.Diff(*specBefore, rt.Spec); diff != "" {
				t.Errorf("the runtime was changed:\n%s", diff)
			}
			if faults := plan.Validate(job, rt, options); (len(faults) == 0) != (err == nil) {
				t.Errorf("Validate says %v, New says %v", faults, err)
			}
			if err != nil {
				compare(t, dir, "want-error.txt", "want.yaml", []byte(err.Error()+"\n"))
				return
			}
			compare(t, dir, "want.yaml", "want-error.txt", render(t, planned))
			knownByName(t, job, planned)
		})
	}
}

// knownByName checks that what a job gets can be found when its plan is forgotten.
func knownByName(t *testing.T, job *trainerv1alpha1.TrainJob, planned plan.Plan) {
	t.Helper()
	configs, secrets := plan.ConfigNames(job), plan.SecretNames(job, secretSuffix)
	for _, config := range planned.ConfigMaps {
		if !slices.Contains(configs, config.Name) {
			t.Errorf("ConfigMap %s is not among %v, and would be left behind", config.Name, configs)
		}
	}
	for _, secret := range planned.Secrets {
		if !slices.Contains(secrets, secret.Name) {
			t.Errorf("Secret %s is not among %v, and would be left behind", secret.Name, secrets)
		}
	}
}

// TestEveryFrameworkHasAGoldenCase holds because a case is named after its framework up to the first dash.
func TestEveryFrameworkHasAGoldenCase(t *testing.T) {
	for _, f := range framework.All() {
		cases, err := filepath.Glob("testdata/" + f.Name() + "-*")
		if err != nil || len(cases) == 0 {
			t.Errorf("no case testdata/%s-*", f.Name())
		}
	}
}

func readCase(t *testing.T, dir string) (*trainerv1alpha1.TrainJob, plan.Runtime, plan.Options) {
	t.Helper()
	var (
		job     trainerv1alpha1.TrainJob
		rt      trainerv1alpha1.ClusterTrainingRuntime
		options plan.Options
	)
	readYAML(t, filepath.Join(dir, "trainjob.yaml"), &job)
	readYAML(t, filepath.Join(dir, "runtime.yaml"), &rt)
	options.SecretSuffix = secretSuffix
	file := filepath.Join(dir, "options.yaml")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		readYAML(t, file, &options)
	}
	return &job, plan.Runtime{Kind: rt.Kind, Name: rt.Name, Annotations: rt.Annotations, Spec: rt.Spec}, options
}

func readYAML(tb testing.TB, file string, into any) {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if err = yaml.UnmarshalStrict(text, into); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
}

// render prints a plan as it would be applied, in the order of application.
func render(t *testing.T, planned plan.Plan) []byte {
	t.Helper()
	var objects []runtime.Object
	if planned.Workload != nil {
		objects = append(objects, planned.Workload)
	}
	for _, group := range planned.PodGroups {
		objects = append(objects, group)
	}
	if planned.ComputeDomain != nil {
		objects = append(objects, planned.ComputeDomain)
	}
	for _, config := range planned.ConfigMaps {
		objects = append(objects, config)
	}
	if planned.ForeignGroup != nil {
		objects = append(objects, planned.ForeignGroup)
	}
	var documents [][]byte
	for _, note := range planned.Notes {
		documents = append(documents, []byte("# "+note+"\n"))
	}
	for _, warning := range planned.Warnings {
		documents = append(documents, []byte("# Warning: "+warning+"\n"))
	}
	for _, claim := range planned.Claims {
		documents = append(
			documents,
			fmt.Appendf(
				nil,
				"ResourceClaim: {name: %s, template: %s, of: %s}\n",
				claim.Name,
				claim.Template,
				claim.Group,
			),
		)
	}
	for _, secret := range planned.Secrets {
		documents = append(documents, []byte(fmt.Sprintf("%s: [%s]\n", secret.Kind, secret.Name)))
	}
	for _, object := range append(objects, planned.JobSet) {
		content, err := plan.Applicable(object)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(content.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, text)
	}
	return bytes.Join(documents, []byte("---\n"))
}

func compare(t *testing.T, dir, name, other string, got []byte) {
	t.Helper()
	file := filepath.Join(dir, name)
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, other))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("got:\n%s\n%v", got, err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "want*")); !slices.Equal(left, []string{file}) {
		t.Errorf("want one expectation, found %v", left)
	}
}
