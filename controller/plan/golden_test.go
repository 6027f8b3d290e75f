package plan_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/plan/cases"
)

// secretSuffix stands for the randomly generated suffix of each job.
const secretSuffix = "random"

var rewrite = flag.Bool("rewrite", false, "write what came out over what was wanted")

// TestGolden plans each case of testdata and compares the result with the golden files: objects, or the text of a
// refusal. The inputs must not change.
func TestGolden(t *testing.T) {
	set := loadCases(t)
	for _, c := range set.All() {
		t.Run(c.Name, func(t *testing.T) {
			job, rt, options := inputs(t, c)
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
				compare(t, c, cases.WantError, err.Error()+"\n")
				return
			}
			compare(t, c, cases.Want, string(render(t, planned)))
			knownByName(t, job, planned)
		})
	}
	if *rewrite {
		if err := set.Save(); err != nil {
			t.Fatal(err)
		}
	}
}

// knownByName checks that the objects of a job can be found by name without its plan.
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

// TestFrameworks_HaveGoldenCases holds because a case is named after its framework up to the first dash.
func TestFrameworks_HaveGoldenCases(t *testing.T) {
	all := loadCases(t).All()
	for _, f := range framework.All() {
		if !slices.ContainsFunc(all, func(c *cases.Case) bool { return strings.HasPrefix(c.Name, f.Name()+"-") }) {
			t.Errorf("no case testdata/%s-*.txtar", f.Name())
		}
	}
}

func loadCases(tb testing.TB) *cases.Set {
	tb.Helper()
	load := cases.Load
	if *rewrite {
		load = cases.Open // expectations of before need not fit
	}
	set, err := load("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// readCase returns the inputs of the case of that name.
func readCase(tb testing.TB, name string) (*trainerv1alpha1.TrainJob, plan.Runtime, plan.Options) {
	tb.Helper()
	c, err := cases.Read("testdata", name)
	if err != nil {
		tb.Fatal(err)
	}
	return inputs(tb, c)
}

func inputs(tb testing.TB, c *cases.Case) (*trainerv1alpha1.TrainJob, plan.Runtime, plan.Options) {
	tb.Helper()
	var (
		job     trainerv1alpha1.TrainJob
		rt      trainerv1alpha1.ClusterTrainingRuntime
		options plan.Options
	)
	readPart(tb, c, cases.TrainJob, &job)
	readPart(tb, c, cases.Runtime, &rt)
	if _, ok := c.Text(cases.Options); ok {
		readPart(tb, c, cases.Options, &options)
	}
	options.SecretSuffix = secretSuffix
	return &job, plan.Runtime{Kind: rt.Kind, Name: rt.Name, Annotations: rt.Annotations, Spec: rt.Spec}, options
}

func readPart(tb testing.TB, c *cases.Case, name string, into any) {
	tb.Helper()
	text, ok := c.Text(name)
	if !ok {
		tb.Fatalf("testdata/%s.txtar has no part %s", c.Name, name)
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		tb.Fatalf("testdata/%s.txtar: %s: %v", c.Name, name, err)
	}
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

// render prints a plan in its applied form, in the order of application.
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

// compare compares with the part of that name, whole, and fails if the case wants something else beside it.
func compare(t *testing.T, c *cases.Case, name, got string) {
	t.Helper()
	if *rewrite {
		for _, other := range c.Parts("want") {
			if other != name {
				c.Remove(other)
			}
		}
		c.Set(name, got)
		return
	}
	want, _ := c.Text(name)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("testdata/%s.txtar: %s (-want +got):\n%s", c.Name, name, diff)
	}
	if left := c.Parts("want"); !slices.Equal(left, []string{name}) {
		t.Errorf("want one expectation %s, found %v", name, left)
	}
}
