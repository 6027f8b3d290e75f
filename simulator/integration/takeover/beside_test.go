package takeover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	lockstepManager = "lockstep.dev/trainjob-controller"
	trainerManager  = "trainer.kubeflow.org/trainjob-controller"
)

// Both controllers run. Each has its own jobs: those of a chosen namespace or runtime are Lockstep's, all others
// Kubeflow Trainer's.
func TestTakeover_Beside(t *testing.T) {
	const jobs = 5
	for _, release := range releases(t) {
		if strings.HasPrefix(release.Version, "v2.2.") {
			continue // it does not look at managedBy: TestTakeover_TrainerIgnoresManagedBy
		}
		t.Run(release.Version, func(t *testing.T) {
			s := newScene(t, "theirs", release)
			s.namespace("ours", map[string]string{"lockstep.dev/trainer": "lockstep"})
			s.installOurCRDs("")
			s.startLockstep("--leader-elect", "--manage=chosen")
			s.runtime("theirs", "chosen", "3s", nil, map[string]any{"lockstep.dev/trainer": "lockstep"})
			s.runtime("theirs", "usual", "3s", nil, nil)
			s.runtime("ours", "usual", "3s", nil, nil)
			s.eventually("Lockstep's webhook", patience, func() bool {
				job, err := s.tryJob("ours", "probe", "TrainingRuntime", "usual", nil, metav1.DryRunAll)
				return err == nil && managedBy(job) == lockstepManager
			})
			var chosen, others []string
			for i := range jobs {
				name := fmt.Sprintf("usual-%d", i)
				s.job("theirs", name, "TrainingRuntime", "usual", nil)
				others = append(others, name)
				s.job("ours", name, "TrainingRuntime", "usual", nil)
				chosen = append(chosen, "ours/"+name)
			}
			s.job("theirs", "chosen", "TrainingRuntime", "chosen", nil)
			chosen = append(chosen, "theirs/chosen")
			s.eachOwned(chosen, others)
			found := s.frozen("ours", "theirs")
			slices.Sort(chosen)
			if !slices.Equal(found, chosen) {
				t.Errorf("Lockstep has rendered %v, want %v", found, chosen)
			}
			s.complete("theirs", append(others, "chosen")...)
			s.complete("ours", others...)
			s.eachOwned(chosen, others) // nor did the other controller touch them later
			s.stopLockstep("")
		})
	}
}

// eachOwned fails the test unless the chosen jobs (namespace/name) are Lockstep's, and the others in theirs are
// Kubeflow Trainer's.
func (s scene) eachOwned(chosen, others []string) {
	s.t.Helper()
	for _, path := range chosen {
		namespace, name, _ := strings.Cut(path, "/")
		s.owned(namespace, name, owner{lockstepManager, true})
	}
	for _, name := range others {
		s.owned("theirs", name, owner{trainerManager, false})
	}
}

// owner is a controller of TrainJobs, by the visible state of its jobs.
type owner struct {
	managedBy string
	gang      bool
}

// owned waits for a job's JobSet, and fails the test unless it is as its owner makes it.
func (s scene) owned(namespace, name string, want owner) {
	s.t.Helper()
	s.eventually("the JobSet of "+name, patience, func() bool { return s.jobSet(namespace, name) != nil })
	job := s.read(trainer("trainjobs"), namespace, name)
	if got := (owner{managedBy(job), s.isGang(namespace, name)}); got != want {
		s.t.Errorf("%s/%s: %+v, want %+v", namespace, name, got, want)
	}
}

func managedBy(job *unstructured.Unstructured) string {
	manager, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
	return manager
}

// Kubeflow Trainer 2.2 makes JobSets whatever managedBy says, so it can only be taken over whole. When this fails, the
// page can say more.
func TestTakeover_TrainerIgnoresManagedBy(t *testing.T) {
	for _, release := range releases(t) {
		if !strings.HasPrefix(release.Version, "v2.2.") {
			continue
		}
		s := newScene(t, "ignores", release)
		s.installOurCRDs("")
		s.runtime("ignores", "usual", "3s", nil, nil)
		s.job("ignores", "job", "TrainingRuntime", "usual", map[string]any{"managedBy": lockstepManager})
		s.eventually(
			"the JobSet of a job that is Lockstep's",
			patience,
			func() bool { return s.jobSet("ignores", "job") != nil },
		)
		s.say("Kubeflow Trainer %s has made the JobSet of a job that is not its own", release.Version)
	}
}
