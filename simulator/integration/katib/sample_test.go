package katib_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	configv1beta1 "github.com/kubeflow/katib/pkg/apis/config/v1beta1"
	commonv1beta1 "github.com/kubeflow/katib/pkg/apis/controller/common/v1beta1"
	experimentsv1beta1 "github.com/kubeflow/katib/pkg/apis/controller/experiments/v1beta1"
	trialsv1beta1 "github.com/kubeflow/katib/pkg/apis/controller/trials/v1beta1"
	"github.com/kubeflow/katib/pkg/controller.v1beta1/experiment/manifest"
	trialutil "github.com/kubeflow/katib/pkg/controller.v1beta1/trial/util"
	"github.com/kubeflow/katib/pkg/webhook/v1beta1/experiment/validator"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	sample   = "../../../manifests/samples-katib/experiment.yaml"
	rendered = "testdata/trial.yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the trial that Katib renders")

// experiment returns the sample as Katib's types have it, with Katib's defaults. A field that they do not have is an
// error.
func experiment(t *testing.T) *experimentsv1beta1.Experiment {
	t.Helper()
	content, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	var e experimentsv1beta1.Experiment
	if err := yaml.UnmarshalStrict(content, &e); err != nil {
		t.Fatal(err)
	}
	e.SetDefault()
	return &e
}

// trial returns the TrainJob that Katib creates for a trial of the sample.
func trial(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	job, err := manifest.New(nil).GetRunSpecWithHyperParameters(experiment(t), "learning-rate-abcd1234", "default",
		[]commonv1beta1.ParameterAssignment{{Name: "lr", Value: "0.003"}})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// configured is Katib's generator with its shipped configuration: every collector and algorithm has an image.
type configured struct{ manifest.Generator }

func (configured) GetSuggestionConfigData(string) (configv1beta1.SuggestionConfig, error) {
	return configv1beta1.SuggestionConfig{}, nil
}

func (configured) GetEarlyStoppingConfigData(string) (configv1beta1.EarlyStoppingConfig, error) {
	return configv1beta1.EarlyStoppingConfig{}, nil
}

func (configured) GetMetricsCollectorConfigData(
	commonv1beta1.CollectorKind,
) (configv1beta1.MetricsCollectorConfig, error) {
	return configv1beta1.MetricsCollectorConfig{}, nil
}

// Katib's validating webhook accepts the sample, and refuses one whose trial does not use its parameter.
func TestSample_IsValid(t *testing.T) {
	webhook := validator.New(configured{manifest.New(nil)})
	if faults := webhook.ValidateExperiment(experiment(t), nil); len(faults) > 0 {
		t.Error(faults)
	}
	broken := experiment(t)
	broken.Spec.TrialTemplate.TrialParameters = nil
	if faults := webhook.ValidateExperiment(broken, nil); len(faults) == 0 {
		t.Error("a template without trialParameters is valid")
	}
}

// The conditions and labels of the sample are those that Katib would fill in for a TrainJob.
func TestSample_SaysKatibsDefaults(t *testing.T) {
	e := experiment(t)
	if got := e.Spec.TrialTemplate.SuccessCondition; got != experimentsv1beta1.DefaultTrainJobSuccessCondition {
		t.Errorf("successCondition: %s", got)
	}
	if got := e.Spec.TrialTemplate.FailureCondition; got != experimentsv1beta1.DefaultTrainJobFailureCondition {
		t.Errorf("failureCondition: %s", got)
	}
	for key, want := range experimentsv1beta1.DefaultTrainJobPrimaryPodLabels {
		if got := e.Spec.TrialTemplate.PrimaryPodLabels[key]; got != want {
			t.Errorf("primaryPodLabels: %s is %q, want %q", key, got, want)
		}
	}
}

// The trial that Katib renders is in testdata, where Lockstep's planner reads it (controller/plan
// TestKatib_TrialRenders).
func TestSample_RendersATrial(t *testing.T) {
	got, err := yaml.Marshal(trial(t).Object)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(rendered, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(rendered)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("Katib renders\n%s\nand %s has\n%s", got, rendered, want)
	}
}

// Katib reads the end of a trial from the conditions that Lockstep writes on TrainJobs, and takes one that waits or is
// suspended for one that runs.
func TestSample_ConditionsTellTheEnd(t *testing.T) {
	for of, want := range map[string]trialutil.ConditionType{
		"Complete": trialutil.JobSucceeded, "Failed": trialutil.JobFailed, "Suspended": trialutil.JobRunning, "": trialutil.JobRunning,
	} {
		job := trial(t)
		if of != "" {
			job.Object["status"] = map[string]any{"conditions": []any{
				map[string]any{
					"type":               of,
					"status":             "True",
					"reason":             "Tested",
					"message":            "told by a test",
					"lastTransitionTime": "2026-11-28T10:00:00Z",
				},
			}}
		}
		e := experiment(t)
		by := &trialsv1beta1.Trial{Spec: trialsv1beta1.TrialSpec{
			SuccessCondition: e.Spec.TrialTemplate.SuccessCondition,
			FailureCondition: e.Spec.TrialTemplate.FailureCondition,
		}}
		got, err := trialutil.GetDeployedJobStatus(by, job)
		if err != nil || got == nil || got.Condition != want {
			t.Errorf("condition %q: %+v (%v), want %s", of, got, err, want)
		}
	}
}
