package takeover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

const (
	ours, theirs = "lockstep-controller", "trainer.kubeflow.org"
	// patience is the limit for steps that take seconds on a machine with nothing else to do.
	patience = time.Minute
)

func suspended() map[string]any { return map[string]any{"suspend": true} }

// queue makes jobs under Kubeflow Trainer: some that wait, one that runs, one that was paused, one that has ended.
func (s scene) queue() {
	s.t.Helper()
	gangs := map[string]any{"lockstep.dev/gang": "on"}
	s.runtime(s.team, "long", "3m", gangs, nil)
	s.runtime(s.team, "short", "3s", gangs, nil)
	s.job(s.team, "running", "TrainingRuntime", "long", nil)
	s.job(s.team, "finished", "TrainingRuntime", "short", nil)
	s.job(s.team, "paused", "TrainingRuntime", "short", nil)
	s.job(s.team, "queued", "TrainingRuntime", "short", suspended())
	// Of these, Kubeflow Trainer and Lockstep render JobSets that differ
	// (controller/plan/upstream_differences_test.go).
	s.job(s.team, "mpi", "ClusterTrainingRuntime", "deepspeed-distributed", map[string]any{
		"suspend": true, "trainer": map[string]any{"image": "example.com/mpi:1", "numNodes": int64(2)},
	})
	s.eventually("the running job's pods", patience, func() bool { return len(s.pods(s.team, "running")) == 2 })
	s.suspend("paused", true)
	s.job(s.team, "typo", "TrainingRuntime", "short", suspended())
	s.kubectl(
		"",
		"annotate",
		"trainjob",
		"-n",
		s.team,
		"typo",
		"lockstep.dev/gang=onn",
	) // Kubeflow Trainer does not look at it
	for _, name := range []string{"queued", "mpi", "typo"} {
		s.eventually("the JobSet of "+name, patience, func() bool { return s.jobSet(s.team, name) != nil })
	}
	s.complete(s.team, "finished")
	s.eventually(
		"the end of the paused job's pods",
		patience,
		func() bool { return len(s.pods(s.team, "paused")) == 0 },
	)
	s.say("Kubeflow Trainer's jobs: running runs, finished has ended, paused, queued, mpi and typo wait")
}

// Lockstep waits for Kubeflow Trainer's lease and takes over whole; then Kubeflow Trainer takes over again. The pods of
// a running job stay the same through all of it, and every job completes.
func TestTakeover_WholeAndBack(t *testing.T) {
	for i, release := range releases(t) {
		t.Run(release.Version, func(t *testing.T) {
			s := newScene(t, fmt.Sprintf("team-%c", 'a'+i), release)
			s.queue()
			pods := s.pods(s.team, "running")
			s.dryRun()
			s.there(pods)
			s.back(pods)
			if i > 0 {
				s.complete(s.team, "running", "gang")
				s.stateless()
				return
			}
			s.suspendReturned("gang")
			s.complete(s.team, "running")
			s.stateless()
			s.page()
		})
	}
}

// dryRun lists the changes of a takeover, with a job that Lockstep refuses and then without. Lockstep starts with the
// same flag.
func (s scene) dryRun() {
	s.t.Helper()
	want := map[string]trainjob.Action{
		"running": trainjob.ActionKeep, "finished": trainjob.ActionNone, "paused": trainjob.ActionReplace,
		"queued": trainjob.ActionReplace, "mpi": trainjob.ActionReplace, "typo": trainjob.ActionBlocked,
	}
	found := s.adopt("dry-run", 1, "--", "--gang-default=on")
	s.actions(found, want)
	for _, name := range []string{"running", "paused", "queued", "mpi"} {
		if !slices.ContainsFunc(
			found[name].Fields,
			func(f string) bool { return strings.HasSuffix(f, ".schedulingGroup") },
		) {
			s.t.Errorf("lockstep adopt does not say that %s becomes a gang: %v", name, found[name].Fields)
		}
	}
	s.kubectl("mend", "annotate", "trainjob", "-n", s.team, "typo", "lockstep.dev/gang=on", "--overwrite")
	want["typo"] = trainjob.ActionReplace
	s.actions(s.adopt("", 0, "--", "--gang-default=on"), want)
}

// there lets Lockstep take over; pods are those of the running job.
func (s scene) there(pods []string) {
	s.t.Helper()
	s.installOurCRDs("our-crds")
	s.samePods("running", pods)
	s.startLockstep("--leader-elect", "--take-over="+cluster.TrainerNamespace, "--gang-default=on")
	leader := s.holder(cluster.TrainerNamespace, theirs)
	time.Sleep(5 * time.Second) // as long as two attempts at the lease
	if now := s.holder(cluster.TrainerNamespace, theirs); now != leader || s.holder("lockstep-system", ours) == now {
		s.t.Errorf("Lockstep leads beside Kubeflow Trainer: %s", now)
	}
	if frozen := s.frozen(s.team); len(frozen) > 0 {
		s.t.Errorf("Lockstep works beside Kubeflow Trainer: it has rendered %v", frozen)
	}
	s.say("Lockstep waits: Kubeflow Trainer holds its lease")
	s.stopTrainer("stop-trainer")
	s.eventually("Lockstep's lead", patience, func() bool {
		now := s.holder(cluster.TrainerNamespace, theirs)
		return now != leader && now != "" && now == s.holder("lockstep-system", ours)
	})
	s.say("Lockstep holds both leases")
	s.trainerWaits()
	for _, name := range []string{"queued", "paused", "mpi", "typo"} {
		s.eventually("the JobSet of "+name+" as a gang", patience, func() bool { return s.isGang(s.team, name) })
	}
	// Kubeflow Trainer's CRD refuses every change of spec.trainer.
	s.kubectl("", "patch", "trainjob", "-n", s.team, "mpi", "--type=merge", "-p", `{"spec":{"trainer":{"numNodes":3}}}`)
	for _, name := range []string{"queued", "paused", "mpi", "typo"} {
		s.suspend(name, false)
	}
	s.complete(s.team, "queued", "paused", "mpi", "typo")
	groups := s.groups(s.team)
	for _, name := range []string{"running", "finished"} {
		if slices.Contains(groups, "podgroups/"+name) || slices.Contains(groups, "workloads/"+name) {
			s.t.Errorf("%s has a phantom group: %v", name, groups)
		}
	}
	s.samePods("running", pods)
	s.heldRuntimes()
}

// trainerWaits starts Kubeflow Trainer beside a leading Lockstep, and fails the test unless it waits for the lease.
func (s scene) trainerWaits() {
	s.t.Helper()
	leader := s.holder(cluster.TrainerNamespace, theirs)
	s.must(shared.StartTrainer(s.t.Context(), s.release))
	s.job(s.team, "meanwhile", "TrainingRuntime", "short", nil)
	s.complete(s.team, "meanwhile")
	time.Sleep(5 * time.Second) // as long as two attempts at the lease
	if now := s.holder(cluster.TrainerNamespace, theirs); now != leader {
		s.t.Errorf("the lease of Kubeflow Trainer is held by %s, it was held by %s", now, leader)
	}
	s.owned(s.team, "meanwhile", owner{trainerManager, true})
	s.say("Kubeflow Trainer %s waits beside a leading Lockstep", s.release.Version)
	s.must(shared.StopTrainer(s.t.Context()))
}

// heldRuntimes fails the test unless runtimes have the finalizer that Kubeflow Trainer 2.2 puts on those with jobs. It
// stays when Lockstep has taken over: docs/takeover.md describes its removal.
func (s scene) heldRuntimes() {
	s.t.Helper()
	want := strings.HasPrefix(s.release.Version, "v2.2.")
	runtime := s.read(trainer("trainingruntimes"), s.team, "short")
	if got := slices.Contains(runtime.GetFinalizers(), "trainer.kubeflow.org/resource-in-use"); got != want {
		s.t.Errorf("the runtime is held: %t, want %t: %v", got, want, runtime.GetFinalizers())
	}
}

// back hands the jobs back: Lockstep stops, and Kubeflow Trainer starts again with its own CRDs.
func (s scene) back(pods []string) {
	s.t.Helper()
	s.job(s.team, "gang", "TrainingRuntime", "long", nil)
	s.job(s.team, "later", "TrainingRuntime", "short", suspended())
	s.eventually("a running gang", patience, func() bool {
		return len(s.pods(s.team, "gang")) == 2 && s.isGang(s.team, "gang")
	})
	s.eventually("a queued gang", patience, func() bool { return s.isGang(s.team, "later") })
	gang := s.pods(s.team, "gang")
	s.actions(s.adopt("dry-run-back", 0, "--back"), map[string]trainjob.Action{
		"running": trainjob.ActionKeep, "gang": trainjob.ActionKeep, "later": trainjob.ActionReplace,
		"finished": trainjob.ActionNone, "paused": trainjob.ActionNone, "queued": trainjob.ActionNone,
		"mpi": trainjob.ActionNone, "typo": trainjob.ActionNone, "meanwhile": trainjob.ActionNone,
	})
	s.stopLockstep("stop-lockstep")
	s.returnTheirCRDs()
	s.samePods("gang", gang)
	s.samePods("running", pods)
	s.kubectl("delete-jobset", "delete", "jobset", "-n", s.team, "later")
	s.kubectl("", "delete", "frozentrainjobs", "-n", "lockstep-system", "--all")
	s.startTrainer()
	s.suspend("later", false)
	s.job(s.team, "new", "TrainingRuntime", "short", nil)
	s.complete(s.team, "later", "new")
	if s.isGang(s.team, "later") {
		s.t.Error("the JobSet of the queued job is still Lockstep's")
	}
	s.samePods("running", pods)
	s.samePods("gang", gang)
}

// suspendReturned suspends a gang that runs across the return. Kubeflow Trainer cannot change its JobSet, which
// therefore has to be deleted.
func (s scene) suspendReturned(name string) {
	s.t.Helper()
	s.kubectl(
		"suspend-returned",
		"patch",
		"trainjob",
		"-n",
		s.team,
		name,
		"--type=merge",
		"-p",
		`{"spec":{"suspend":true}}`,
	)
	s.kubectl("suspend-returned", "delete", "jobset", "-n", s.team, name)
	s.eventually("Kubeflow Trainer's own JobSet of "+name, patience, func() bool {
		jobSet := s.jobSet(s.team, name)
		if jobSet == nil || jobSet.GetDeletionTimestamp() != nil || s.isGang(s.team, name) {
			return false
		}
		waits, _, _ := unstructured.NestedBool(jobSet.Object, "spec", "suspend")
		return waits && len(s.pods(s.team, name)) == 0
	})
	s.say("%s is suspended, and Kubeflow Trainer's", name)
}

// stateless fails the test unless Lockstep's state of the jobs is deleted.
func (s scene) stateless() {
	s.t.Helper()
	if frozen := s.frozen(s.team); len(frozen) > 0 {
		s.t.Errorf("Lockstep's state has stayed: %v", frozen)
	}
}

func (s scene) samePods(name string, before []string) {
	s.t.Helper()
	if now := s.pods(s.team, name); !slices.Equal(now, before) {
		s.t.Errorf("the pods of %s are %v, they were %v", name, now, before)
		return
	}
	s.say("the pods of %s are the same", name)
}
