package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// everyPlan calls back for each case of testdata that can be planned.
func everyPlan(t *testing.T, use func(t *testing.T, dir string, planned plan.Plan)) {
	t.Helper()
	cases, err := filepath.Glob("testdata/*/trainjob.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		job, rt, options := readCase(t, dir)
		if planned, err := plan.New(job, rt, options); err == nil {
			t.Run(filepath.Base(dir), func(t *testing.T) { use(t, dir, planned) })
		}
	}
}

// Whatever the administrator switches after a job was rendered, its JobSet comes out as it was: under the decisions that were
// frozen with it, and under those that the JobSet shows.
func TestDecisions_RenderTheSameJobSet(t *testing.T) {
	everyPlan(t, func(t *testing.T, dir string, planned plan.Plan) {
		t.Helper()
		job, rt, options := readCase(t, dir)
		switched := options
		switched.Gang, switched.SecretSuffix = !options.Gang, "another"
		switched.StatusServer = &plan.StatusServer{URL: "https://elsewhere", Authority: "today's"}
		if options.StatusServer != nil {
			switched.StatusServer = nil
		}
		for name, decided := range map[string]statev1alpha1.Decisions{
			"frozen": options.Decide(planned), "of the JobSet": plan.DecisionsOf(planned.JobSet),
		} {
			again, err := plan.New(job, rt, switched.Under(decided))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(planned.JobSet, again.JobSet); diff != "" {
				t.Errorf("%s (-before +after the switch):\n%s", name, diff)
			}
		}
	})
}

// A rendering is told from another by its digest, but not by its being suspended.
func TestRendering_IgnoresSuspension(t *testing.T) {
	job, rt, options := readCase(t, "testdata/torch-defaults")
	digest := func(change func(*jobsetv1alpha2.JobSet)) string {
		planned, err := plan.New(job, rt, options)
		if err != nil {
			t.Fatal(err)
		}
		change(planned.JobSet)
		rendering, err := planned.Rendering()
		if err != nil || rendering.Renderer != plan.Renderer {
			t.Fatalf("renderer %d, want %d (%v)", rendering.Renderer, plan.Renderer, err)
		}
		return rendering.Digest
	}
	same := digest(func(*jobsetv1alpha2.JobSet) {})
	if got := digest(func(j *jobsetv1alpha2.JobSet) { j.Spec.Suspend = new(true) }); got != same {
		t.Error("a suspended JobSet has another digest")
	}
	if got := digest(func(j *jobsetv1alpha2.JobSet) { j.Spec.ReplicatedJobs[0].Replicas++ }); got == same {
		t.Error("a JobSet with one more Job has the same digest")
	}
}

// renderings has the version of the renderer and the digest of each case, for TestRenderer_RisesWithItsRules.
const renderings = "testdata-renderings.txt"

// A queue can hold JobSets of an earlier release. Whether this one renders them otherwise is known by the version of the
// renderer, so the version must rise when the rules change. -rewrite writes the file anew, and refuses to without a new version.
func TestRenderer_RisesWithItsRules(t *testing.T) {
	content, err := os.ReadFile(renderings)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	var version int
	known := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, digest, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[name] = digest
	}
	_, _ = fmt.Sscan(known["renderer"], &version)
	var now strings.Builder
	fmt.Fprintf(&now, "renderer %d\n", plan.Renderer)
	everyPlan(t, func(t *testing.T, dir string, planned plan.Plan) {
		t.Helper()
		rendering, err := planned.Rendering()
		if err != nil {
			t.Fatal(err)
		}
		name, digest := filepath.Base(dir), rendering.Digest[:16]
		fmt.Fprintln(&now, name, digest)
		switch had, ok := known[name]; {
		case ok && had != digest && version >= plan.Renderer:
			t.Error("it is rendered otherwise than before: raise plan.Renderer, then run the test with -args -rewrite")
		case (!ok || had != digest) && !*rewrite:
			t.Errorf("%s does not know this rendering: run the test with -args -rewrite", renderings)
		}
	})
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(renderings, []byte(now.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
