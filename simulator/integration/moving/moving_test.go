package moving_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// A cluster is upgraded to one that serves Kubernetes' own PodGroups, and gangs stay custom resources until a user
// chooses otherwise. Then they are moved, and back again. No pod of a running gang is touched; waiting gangs retain
// their order, and start in the new API.
func TestGangAPI_GangsMoveAndBack(t *testing.T) {
	s := scene{t: t, began: time.Now()}
	_, err := shared.Client.CoreV1().Namespaces().
		Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{})
	s.must(err)
	// Four cliques of 18 trays, all in use: a gang of each kind, and two that wait.
	s.submit(
		sharing + "---\n" + inClique(
			"filler",
			14,
		) + inClique(
			"steady",
			18,
		) + gang(
			"nvlink",
			18,
			"lockstep.dev/mnnvl: required",
		) +
			inClique(
				"leaving",
				18,
			),
	)
	s.eventually("72 pods run", func() string { return lacks(len(s.running()), 72) })
	s.submit(inClique("first", 18))
	time.Sleep(time.Second) // the second of their creation decides
	s.submit(inClique("second", 18))
	s.eventually("two gangs wait", func() string { return s.wait("first", "second") })
	before := s.running()
	jobs := []string{"sharing", "filler", "steady", "nvlink", "leaving", "first", "second"}

	s.must(shared.Regate(t.Context(), probe.Full))
	s.say("the control plane serves %s", gangapi.Native.Version())
	s.must(shared.RestartController(t.Context()))
	s.must(shared.RestartScheduler(t.Context()))
	s.say("controller and scheduler were started again")
	s.kept(gangapi.Resources, jobs)
	if native := s.groups(gangapi.Native); len(native) > 0 {
		t.Errorf("without being told to, gangs were moved: %v", slices.Collect(maps.Keys(native)))
	}
	s.undisturbed(before)

	s.move(gangapi.Native, jobs, before)
	s.remove("leaving")
	s.eventually("the gang that waits longest has the place", func() string { return s.lacks("first", 18) })
	if got := s.members("second"); got > 0 {
		t.Errorf("%d pods of the second gang run", got)
	}
	s.suspend("steady", true)
	s.eventually("the second gang has a place, too", func() string { return s.lacks("second", 18) })
	s.eventually("what nobody needs is gone from the former API", func() string {
		left := s.groups(gangapi.Resources)
		for _, name := range []string{"steady", "leaving"} {
			if _, there := left[name]; there {
				return name + " is there"
			}
		}
		return ""
	})
	s.suspend("steady", false)
	s.eventually("the gang that was suspended waits again", func() string { return s.wait("steady") })

	before = s.running()
	s.move(gangapi.Resources, []string{"sharing", "filler", "nvlink", "first", "second", "steady"}, before)
	s.must(shared.Regate(t.Context(), probe.Resources))
	s.say("the control plane serves no PodGroups of its own")
	s.remove("first")
	s.eventually("the gang that waited has its place", func() string { return s.lacks("steady", 18) })
	maps.DeleteFunc(before, func(name string, _ place) bool { return strings.HasPrefix(name, "first-") })
	s.undisturbed(before)
	s.uninstall()
}

// move gives the controller the API in which gangs are stored from now on; the scheduler follows. No running or waiting
// gang may change.
func (s scene) move(to gangapi.API, jobs []string, before map[string]place) {
	s.t.Helper()
	was := map[string]trainerv1alpha1.SchedulingStatus{}
	for _, job := range jobs {
		was[job] = s.said(job)
	}
	scheduler := shared.Scheduler()
	s.must(shared.StopController(s.t.Context()))
	s.must(shared.StartController(s.t.Context(), "--gang-api="+string(to)))
	s.say("the controller was told --gang-api=%s", to)
	s.must(shared.AwaitScheduler(s.t.Context(), scheduler))
	s.say("the scheduler has ended by itself, and was started again")
	s.kept(to, jobs)
	s.must(shared.RestartController(s.t.Context()))
	s.say("the controller was started again without the flag")
	s.kept(to, jobs)
	time.Sleep(10 * time.Second) // for any process that would disturb a gang
	s.undisturbed(before)
	for _, job := range jobs {
		now := s.said(job)
		if now.Phase != was[job].Phase ||
			now.Phase != trainerv1alpha1.PhaseWaiting && fmt.Sprint(now.Placement) != fmt.Sprint(was[job].Placement) {
			s.t.Errorf(
				"%s said %s at %+v, and says %s at %+v",
				job,
				was[job].Phase,
				was[job].Placement,
				now.Phase,
				now.Placement,
			)
		}
	}
}

// kept waits until an API has the groups of all jobs, with their conditions.
func (s scene) kept(api gangapi.API, jobs []string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s has %d groups", api.Version(), len(jobs)), func() string {
		groups := s.groups(api)
		for _, job := range jobs {
			if group, there := groups[job]; !there || len(group.Status.Conditions) == 0 {
				return fmt.Sprintf("%s: there %t, conditions %v", job, there, group.Status.Conditions)
			}
		}
		return ""
	})
}

// wait returns the first of the jobs that does not wait, "" if all do.
func (s scene) wait(jobs ...string) string {
	for _, job := range jobs {
		if said := s.said(job); said.Phase != trainerv1alpha1.PhaseWaiting {
			return fmt.Sprintf("%s is %q", job, said.Phase)
		}
	}
	return ""
}

// lacks returns the missing pods of a job that needs so many, with its own report of that.
func (s scene) lacks(job string, pods int) string {
	missing := lacks(s.members(job), pods)
	if missing == "" {
		return ""
	}
	return fmt.Sprintf("%s: %+v", missing, s.said(job))
}

func lacks(have, want int) string {
	if have == want {
		return ""
	}
	return fmt.Sprintf("%d of %d pods run", have, want)
}
