package admission_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// discovered answers for the API server to requests for the resources of a version.
type discovered struct{ err error }

func (d discovered) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, d.err
}

// A job that streams its dataset from a cache is warned of faults that Kubeflow's initializer does not report:
// LeaderWorkerSet is not served, or a variable is not set.
func TestCreate_WarnsOfACacheThatWillNotBe(t *testing.T) {
	const (
		absent   = "LeaderWorkerSet of leaderworkerset.x-k8s.io/v1 is not served"
		variable = "without IAM_ROLE Kubeflow's initializer"
	)
	var shipped trainerv1alpha1.ClusterTrainingRuntime
	readYAML(
		t,
		filepath.Join("..", "..", "manifests", "chart", "runtimes", "torch-distributed-with-cache.yaml"),
		&shipped,
	)
	runtime := finds{found: resolve.Found{
		Runtime: plan.Runtime{Kind: "ClusterTrainingRuntime", Name: shipped.Name, Spec: shipped.Spec},
	}}
	missingSets := discovered{apierrors.NewNotFound(schema.GroupResource{}, "")}
	location := corev1.EnvVar{Name: "METADATA_LOC", Value: "s3://bucket/metadata.json"}
	role := corev1.EnvVar{Name: "IAM_ROLE", Value: "arn:aws:iam::123456789012:role/reader"}
	for name, c := range map[string]struct {
		found   discovered
		dataset trainerv1alpha1.DatasetInitializer
		says    []string
	}{
		"all is there":  {discovered{}, trainerv1alpha1.DatasetInitializer{Env: []corev1.EnvVar{location, role}}, nil},
		"no role":       {discovered{}, trainerv1alpha1.DatasetInitializer{Env: []corev1.EnvVar{location}}, []string{variable}},
		"an empty role": {discovered{}, trainerv1alpha1.DatasetInitializer{Env: []corev1.EnvVar{location, {Name: "IAM_ROLE"}}}, []string{variable}},
		"a Secret may have it": {
			discovered{},
			trainerv1alpha1.DatasetInitializer{SecretRef: &corev1.LocalObjectReference{Name: "s"}},
			nil,
		},
		"no LeaderWorkerSet": {
			missingSets,
			trainerv1alpha1.DatasetInitializer{Env: []corev1.EnvVar{location, role}},
			[]string{absent},
		},
		"neither": {
			missingSets, trainerv1alpha1.DatasetInitializer{Env: []corev1.EnvVar{location}}, []string{variable, absent},
		},
	} {
		validator := newValidator(t, runtime)
		validator.Kinds.Discovery = c.found
		job := trainJob(func(job *trainerv1alpha1.TrainJob) {
			c.dataset.StorageURI = new("cache://warehouse/events")
			job.Spec.Initializer = &trainerv1alpha1.Initializer{Dataset: &c.dataset}
		})
		got, err := validator.Create(t.Context(), job)
		if err != nil || got.Refusal != nil {
			t.Fatal(name, err, got.Refusal)
		}
		if !slices.EqualFunc(got.Warnings, c.says, strings.Contains) {
			t.Errorf("%s: warnings %q, want %q", name, got.Warnings, c.says)
		}
	}
}
