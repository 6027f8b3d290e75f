package statusserver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// A report is answered before it is written, so Validate must refuse the reports that the CRD refuses, in either
// version, and no others.
func TestValidate_RefusesWhatTheCRDRefuses(t *testing.T) {
	metrics := func(count int) []trainerv1alpha1.Metric {
		all := make([]trainerv1alpha1.Metric, count)
		for i := range all {
			all[i] = trainerv1alpha1.Metric{Name: "loss", Value: "1"}
		}
		return all
	}
	metric := func(name, value string) func(*trainerv1alpha1.TrainerStatus) {
		return func(s *trainerv1alpha1.TrainerStatus) {
			s.Metrics = []trainerv1alpha1.Metric{{Name: name, Value: value}}
		}
	}
	refuses := trainerStatusOfTheCRD(t)
	for name, test := range map[string]struct {
		change func(*trainerv1alpha1.TrainerStatus)
		want   bool // refused
	}{
		"a time alone":               {change: func(*trainerv1alpha1.TrainerStatus) {}},
		"no time":                    {change: func(s *trainerv1alpha1.TrainerStatus) { s.LastUpdatedTime = metav1.Time{} }, want: true},
		"0 per cent":                 {change: func(s *trainerv1alpha1.TrainerStatus) { s.ProgressPercentage = new(int32(0)) }},
		"100 per cent":               {change: func(s *trainerv1alpha1.TrainerStatus) { s.ProgressPercentage = new(int32(100)) }},
		"101 per cent":               {change: func(s *trainerv1alpha1.TrainerStatus) { s.ProgressPercentage = new(int32(101)) }, want: true},
		"-1 per cent":                {change: func(s *trainerv1alpha1.TrainerStatus) { s.ProgressPercentage = new(int32(-1)) }, want: true},
		"no time left":               {change: func(s *trainerv1alpha1.TrainerStatus) { s.EstimatedRemainingSeconds = new(int32(0)) }},
		"less than no time left":     {change: func(s *trainerv1alpha1.TrainerStatus) { s.EstimatedRemainingSeconds = new(int32(-1)) }, want: true},
		"no metrics":                 {change: func(s *trainerv1alpha1.TrainerStatus) { s.Metrics = metrics(0) }},
		"256 metrics of one name":    {change: func(s *trainerv1alpha1.TrainerStatus) { s.Metrics = metrics(256) }},
		"257 metrics":                {change: func(s *trainerv1alpha1.TrainerStatus) { s.Metrics = metrics(257) }, want: true},
		"64 letters":                 {change: metric(strings.Repeat("n", 64), strings.Repeat("v", 64))},
		"65 letters of a name":       {change: metric(strings.Repeat("n", 65), "1"), want: true},
		"65 letters of a value":      {change: metric("loss", strings.Repeat("v", 65)), want: true},
		"64 letters of 3 bytes each": {change: metric("loss", strings.Repeat("\u8a13", 64))},
		"65 letters of 3 bytes each": {change: metric("loss", strings.Repeat("\u8a13", 65)), want: true},
		"64 letters of 4 bytes each": {change: metric("loss", strings.Repeat("\U0001F600", 64))},
		"a nameless metric":          {change: metric("", "1"), want: true},
		"a metric without a value":   {change: metric("loss", ""), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			status := &trainerv1alpha1.TrainerStatus{LastUpdatedTime: metav1.NewTime(time.Unix(1_795_513_000, 0))}
			test.change(status)
			err := statusserver.Validate("train", status)
			if (err != nil) != test.want {
				t.Errorf("refused: %v, want %t", err, test.want)
			}
			for version, why := range refuses(status) {
				if (why != "") != test.want {
					t.Errorf("the CRD's %s refuses: %q, want %t", version, why, test.want)
				}
			}
		})
	}
}

// trainerStatusOfTheCRD returns why each version of the CRD that is shipped refuses a trainerStatus; empty if it does
// not.
func trainerStatusOfTheCRD(t *testing.T) func(*trainerv1alpha1.TrainerStatus) map[string]string {
	t.Helper()
	text, err := os.ReadFile(
		filepath.Join("..", "..", "manifests", "chart", "crds", "trainer.kubeflow.org_trainjobs.yaml"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err = yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(any) string{}
	for _, version := range crd.Spec.Versions {
		part := version.Schema.OpenAPIV3Schema.Properties["status"].Properties["trainerStatus"]
		var props apiextensions.JSONSchemaProps
		err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&part, &props, nil)
		if err != nil {
			t.Fatal(err)
		}
		bounds, _, err := validation.NewSchemaValidator(&props)
		if err != nil {
			t.Fatal(err)
		}
		schema, err := structuralschema.NewStructural(&props)
		if err != nil {
			t.Fatal(err)
		}
		rules := cel.NewValidator(schema, false, celconfig.PerCallLimit)
		checks[version.Name] = func(object any) string {
			faults := validation.ValidateCustomResource(nil, object, bounds)
			violated, _ := rules.Validate(t.Context(), nil, schema, object, nil, celconfig.RuntimeCELCostBudget)
			if faults = append(faults, violated...); len(faults) > 0 {
				return faults.ToAggregate().Error()
			}
			return ""
		}
	}
	if len(checks) == 0 {
		t.Fatal("the CRD has no versions")
	}
	return func(status *trainerv1alpha1.TrainerStatus) map[string]string {
		content, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		why := map[string]string{}
		for version, check := range checks {
			why[version] = check(object)
		}
		return why
	}
}
