package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// oldMetadata is the part of an old job's metadata that is handed on.
type oldMetadata struct {
	Name         string            `json:"name"`
	GenerateName string            `json:"generateName"`
	Namespace    string            `json:"namespace"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	// OwnerReferences and Finalizers name other objects and controllers, which do not know the new objects.
	OwnerReferences []any `json:"ownerReferences"`
	Finalizers      []any `json:"finalizers"`
}

// oldObject are the fields that all old jobs have beside their spec.
type oldObject struct {
	metav1.TypeMeta `            json:",inline"`
	Metadata        oldMetadata `json:"metadata"`
}

// successor is the replacement of an old job.
type successor struct {
	runtime trainerv1alpha1.TrainingRuntime
	job     trainerv1alpha1.TrainJob
}

// jobName matches the names that the API server accepts for TrainJobs.
var jobName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// successor returns the beginning of a runtime and a job, which have names and a framework.
func (p *page) successor(old oldMetadata, framework string) (*successor, error) {
	stem := cmp.Or(old.Name, strings.TrimSuffix(old.GenerateName, "-"))
	if !jobName.MatchString(stem) {
		return nil, p.bad(at("metadata", "name"), "a TrainJob cannot be called \""+stem+"\"",
			"use at most 63 lower case letters, digits and dashes, a letter first")
	}
	if len(old.OwnerReferences) > 0 {
		p.note(at("metadata", "ownerReferences"), "left out: the owner made another object than the TrainJob")
	}
	if len(old.Finalizers) > 0 {
		p.note(at("metadata", "finalizers"), "left out: no controller would take them off the TrainJob")
	}
	s := &successor{
		runtime: trainerv1alpha1.TrainingRuntime{
			TypeMeta: metav1.TypeMeta{
				APIVersion: trainerv1alpha1.GroupVersion().String(), Kind: trainerv1alpha1.TrainingRuntimeKind,
			},
			ObjectMeta: metav1.ObjectMeta{
				Name: stem + "-runtime", Namespace: old.Namespace,
				Labels: map[string]string{trainerv1alpha1.LabelFramework: framework},
			},
			Spec: trainerv1alpha1.TrainingRuntimeSpec{MLPolicy: &trainerv1alpha1.MLPolicy{}},
		},
		job: trainerv1alpha1.TrainJob{
			TypeMeta: metav1.TypeMeta{
				APIVersion: trainerv1alpha1.GroupVersion().String(), Kind: trainerv1alpha1.TrainJobKind,
			},
			ObjectMeta: metav1.ObjectMeta{
				Name: old.Name, GenerateName: old.GenerateName, Namespace: old.Namespace,
				Labels: old.Labels, Annotations: old.Annotations,
			},
			Spec: trainerv1alpha1.TrainJobSpec{
				RuntimeRef: trainerv1alpha1.RuntimeRef{
					APIGroup: new(
						trainerv1alpha1.Group,
					),
					Kind: new(trainerv1alpha1.TrainingRuntimeKind),
					Name: stem + "-runtime",
				},
				Trainer: &trainerv1alpha1.Trainer{},
			},
		},
	}
	return s, nil
}

// jobSet is the spec of the runtime's JobSet template.
func (s *successor) jobSet() *jobsetv1alpha2.JobSetSpec { return &s.runtime.Spec.Template.Spec }

// restarts lets the whole job start again this many times.
func (s *successor) restarts(times int32) {
	s.jobSet().FailurePolicy = &jobsetv1alpha2.FailurePolicy{MaxRestarts: times}
}

// finish returns the runtime and the job, in the order in which they must be created.
func (p *page) finish(s *successor) ([]map[string]any, error) {
	if err := p.checkPodNames(s); err != nil {
		return nil, err
	}
	runtime, err := untyped(s.runtime)
	if err != nil {
		return nil, err
	}
	job, err := untyped(s.job)
	if err != nil {
		return nil, err
	}
	return []map[string]any{runtime, job}, nil
}

// stem is the name that the runtime's name and the pods' names begin with.
func (s *successor) stem() string { return strings.TrimSuffix(s.runtime.Name, "-runtime") }

// maxLabel is the longest name of a pod, and generated the length that a generated suffix adds.
const (
	maxLabel  = 63
	generated = 5
)

// checkPodNames refuses a name that is short enough for the job, but with which JobSet would not make any pod.
func (p *page) checkPodNames(s *successor) error {
	for _, job := range s.jobSet().ReplicatedJobs {
		last := max(0, *s.job.Spec.Trainer.NumNodes-1)
		if job.Name == trainerv1alpha1.LauncherName {
			last = 0
		}
		pod := fmt.Sprintf("%s-%s-0-%d-%s", s.stem(), job.Name, last, strings.Repeat("x", generated))
		excess := len(pod) - maxLabel
		if s.job.Name == "" {
			excess += generated + 1
		}
		if excess > 0 {
			return p.bad(at("metadata", "name"),
				fmt.Sprintf("the name is %d characters too long: pods would be called %s", excess, pod), "shorten it")
		}
	}
	return nil
}
