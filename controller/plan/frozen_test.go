package plan_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/plan/cases"
)

// everyPlan calls back for each case of testdata that can be planned.
func everyPlan(t *testing.T, use func(t *testing.T, c *cases.Case, planned plan.Plan)) {
	t.Helper()
	for _, c := range loadCases(t).All() {
		job, rt, options := inputs(t, c)
		if planned, err := plan.New(job, rt, options); err == nil {
			t.Run(c.Name, func(t *testing.T) { use(t, c, planned) })
		}
	}
}

// Whatever the administrator switches after a job was rendered, its JobSet is rendered the same: under the decisions
// that were frozen with it, and under those that the JobSet shows.
func TestDecisions_RenderTheSameJobSet(t *testing.T) {
	everyPlan(t, func(t *testing.T, c *cases.Case, planned plan.Plan) {
		t.Helper()
		job, rt, options := inputs(t, c)
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

// The digest distinguishes renderings, but not suspended from running ones.
func TestRendering_IgnoresSuspension(t *testing.T) {
	job, rt, options := readCase(t, "torch-defaults")
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

// A queue can hold JobSets of an earlier release. The version of the renderer shows whether this one renders them
// differently, so the version must rise when the rules change. -rewrite rewrites the file, and refuses to without a new
// version.
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
	everyPlan(t, func(t *testing.T, c *cases.Case, planned plan.Plan) {
		t.Helper()
		rendering, err := planned.Rendering()
		if err != nil {
			t.Fatal(err)
		}
		name, digest := c.Name, rendering.Digest[:16]
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
