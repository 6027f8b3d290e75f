package admission_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/controller/admission"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/sizing"
)

// shippedRuntime is a runtime that ships.
func shippedRuntime(t *testing.T, name string) finds {
	t.Helper()
	var rt trainerv1alpha1.ClusterTrainingRuntime
	readYAML(t, filepath.Join("..", "..", "manifests", "chart", "runtimes", name+".yaml"), &rt)
	return finds{found: resolve.Found{Runtime: plan.Runtime{Kind: rt.Kind, Name: rt.Name, Spec: rt.Spec}}}
}

// offering are so many nodes with 8 GPUs of so many GiB.
func offering(nodes, gib int64) admission.Offers {
	fleet := sizing.Fleet{Known: true}
	for range nodes {
		fleet.Nodes = append(fleet.Nodes, sizing.Node{
			Resource: "nvidia.com/gpu",
			Devices:  8,
			Memory:   gib << 30,
			Product:  "H100",
			PinKey:   "product",
			PinValue: "H100",
		})
	}
	return func() sizing.Fleet { return fleet }
}

// created is a job as both webhooks let it in, and why they do not.
func created(t *testing.T, offers admission.Offers, job string) (stored []byte, refusal error) {
	t.Helper()
	runtimes := shippedRuntime(t, "torchtune-llama3.2-3b")
	defaulter := &admission.Defaulter{
		Runtimes: runtimes,
		Offers:   offers,
		Clock:    clocktesting.NewFakePassiveClock(now()),
	}
	stored, err := defaulter.Default(t.Context(), admission.Change{
		Namespace: "team-a", User: authenticationv1.UserInfo{Username: "ada"}, Next: []byte(job),
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := defaulter.Default(t.Context(), admission.Change{Namespace: "team-a", Next: stored})
	if err != nil || string(again) != string(stored) {
		t.Errorf("asked a second time (%v) the webhook makes of\n%s\nthis:\n%s", err, stored, again)
	}
	validator := newValidator(t, runtimes)
	validator.Offers = offers
	verdict, err := validator.Create(t.Context(), decodedJob(t, stored))
	if err != nil {
		t.Fatal(err)
	}
	return stored, verdict.Refusal
}

func decodedJob(t *testing.T, text []byte) *trainerv1alpha1.TrainJob {
	t.Helper()
	job := &trainerv1alpha1.TrainJob{}
	if err := json.Unmarshal(text, job); err != nil {
		t.Fatal(err)
	}
	return job
}

const autoJob = `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
"metadata":{"name":"train","namespace":"team-a","annotations":{"lockstep.dev/auto-resources":"true"}},
"spec":{"runtimeRef":{"name":"torchtune-llama3.2-3b"},"trainer":{"command":["tune","run"],"unknown":"kept"},
"runtimePatches":[{"manager":"example.com/me"}]}}`

func TestFill_WritesTheResultOnce(t *testing.T) {
	t.Parallel()
	stored, refusal := created(t, offering(2, 80), autoJob)
	job := decodedJob(t, stored)
	gpus := job.Spec.Trainer.ResourcesPerNode.Limits["nvidia.com/gpu"]
	if refusal != nil || *job.Spec.Trainer.NumNodes != 1 || gpus.Value() != 1 ||
		!strings.Contains(string(stored), `"unknown":"kept"`) {
		t.Errorf("it is %s, refused with %v", stored, refusal)
	}
	patches := job.Spec.RuntimePatches
	if len(patches) != 2 || patches[0].Manager != "example.com/me" || patches[1].Manager != plan.AutoManager ||
		!patches[1].Time.Time.Equal(now()) {
		t.Fatalf("its patches are %+v", patches)
	}
	words := patches[1].TrainingRuntimeSpec.Template.Metadata.Annotations["state.lockstep.dev/auto-resources"]
	if !strings.HasPrefix(words, "1 node x 1 nvidia.com/gpu (H100, 80.0 GiB): torchtune's llama3_2/3B") {
		t.Errorf("it says %q", words)
	}
	if strings.Contains(string(stored), "creationTimestamp") {
		t.Errorf("the entry has fields that nothing was said about: %s", stored)
	}
}

// Another fleet, later, changes nothing, and neither does a client that sends the patches that it knows of.
func TestFill_LaterUpdatesLeaveIt(t *testing.T) {
	t.Parallel()
	stored, _ := created(t, offering(2, 80), autoJob)
	defaulter := &admission.Defaulter{
		Runtimes: shippedRuntime(
			t,
			"torchtune-llama3.2-3b",
		),
		Offers: offering(2, 24),
		Clock:  clocktesting.NewFakePassiveClock(now()),
	}
	tree := map[string]any{}
	if err := json.Unmarshal(stored, &tree); err != nil {
		t.Fatal(err)
	}
	tree["spec"].(map[string]any)["runtimePatches"] = []any{map[string]any{"manager": "example.com/me"}}
	applied, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	for name, next := range map[string][]byte{"the same": stored, "without the entry": applied} {
		out, err := defaulter.Default(t.Context(), admission.Change{Namespace: "team-a", Old: stored, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decodedJob(t, stored), decodedJob(t, out)); diff != "" {
			t.Errorf("%s: the job changes (-before +after):\n%s", name, diff)
		}
	}
	tree["metadata"].(map[string]any)["annotations"] = map[string]any{"lockstep.dev/auto-resources": "false"}
	if applied, err = json.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	out, err := defaulter.Default(t.Context(), admission.Change{Namespace: "team-a", Old: stored, Next: applied})
	if err != nil ||
		strings.Contains(string(out), plan.AutoManager+`"`) && len(decodedJob(t, out).Spec.RuntimePatches) != 1 {
		t.Errorf("an entry that is taken back comes again: %s %v", out, err)
	}
}

func TestFill_RefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		offers admission.Offers
		job    string
		want   string
	}{
		"nothing fits":     {offering(2, 8), autoJob, "nothing fits: even 1 node x"},
		"no GPUs":          {offering(0, 0), autoJob, "no node of this cluster offers GPUs"},
		"memory not known": {offering(2, 0), autoJob, "2 nodes offer nvidia.com/gpu and do not say how much memory"},
		"nodes not known":  {nil, autoJob, "not known yet"},
		"size not known":   {offering(2, 80), strings.Replace(autoJob, `["tune","run"]`, `["python"]`, 1), "nothing says how large the model is"},
		"no description": {
			offering(2, 80), strings.Replace(autoJob, `"annotations":{`, `"annotations":{"lockstep.dev/model":"8B",`, 1),
			"must be key=value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored, refusal := created(t, c.offers, c.job)
			if refusal == nil || !strings.Contains(refusal.Error(), c.want) || strings.Contains(refusal.Error(), "\n") {
				t.Errorf("it is refused with %v, want %q", refusal, c.want)
			}
			if job := decodedJob(
				t,
				stored,
			); job.Spec.Trainer.ResourcesPerNode != nil ||
				job.Spec.Trainer.NumNodes != nil {
				t.Errorf("it was completed all the same: %s", stored)
			}
		})
	}
}

func TestFill_WhatTheOwnerSaysStays(t *testing.T) {
	t.Parallel()
	own := strings.Replace(
		autoJob,
		`"unknown":"kept"`,
		`"numNodes":1,"resourcesPerNode":{"limits":{"nvidia.com/gpu":"4"}}`,
		1,
	)
	stored, refusal := created(t, offering(2, 80), own)
	job := decodedJob(t, stored)
	gpus := job.Spec.Trainer.ResourcesPerNode.Limits["nvidia.com/gpu"]
	if refusal != nil || gpus.Value() != 4 || len(job.Spec.RuntimePatches) != 1 {
		t.Errorf("it is %s, refused with %v", stored, refusal)
	}
}
