package real_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// delay is the time that an upgrade may add to the wait of a gang.
const delay = 5 * time.Second

// The release before this one is upgraded to this one, back and again, while a gang runs, another waits for its room,
// and others are submitted: none is disturbed, and none waits longer than without an upgrade, but for the delay.
func TestUpgrade_DisturbsNoGang(t *testing.T) {
	before, now := chartOf(t, "previous"), chartOf(t, "e2e")
	install(t, "helm", before)
	submit(t, "running", "20m", 4)
	eventually(t, time.Minute, "a gang that runs on", func() bool { return runs(t, "running") })
	pods := podsOf(t, "running", "")
	usual := turn(t, "usual", pause)
	quiet := slowest(t, "quiet", func() error { time.Sleep(10 * time.Second); return nil })

	const crd = "trainjobs.trainer.kubeflow.org"
	schema := []string{"get", "crd", crd, "-o", `jsonpath={.metadata.annotations.lockstep\.dev/schema}`}
	kubectl(t, "annotate", "crd", crd, "lockstep.dev/schema=older", "--overwrite")
	failing(t, now)
	undisturbed(t, "an upgrade that failed", pods)
	upgrade := func() error {
		_, err := run(
			t,
			"helm",
			slices.Concat([]string{"upgrade", "lockstep", now, "--reset-then-reuse-values"}, waiting(namespace()))...)
		time.Sleep(3 * time.Second) // the pods of before end
		return err
	}
	waited := turn(t, "waiting", upgrade)
	t.Logf(
		"a gang starts %.1f s after its room is free, and %.1f s if that is amidst an upgrade",
		usual.Seconds(),
		waited.Seconds(),
	)
	if waited-usual > delay {
		t.Errorf("the upgrade delays a gang that waits by %v, want at most %v", waited-usual, delay)
	}
	undisturbed(t, "the upgrade", pods)
	if kubectl(t, schema...) == "older" {
		t.Error("the upgrade left the CRD of another release")
	}
	doctor(t)

	back := slowest(t, "back", func() error {
		_, err := run(t, "helm", slices.Concat([]string{"rollback", "lockstep", "1"}, waiting(namespace()))...)
		time.Sleep(3 * time.Second)
		return err
	})
	undisturbed(t, "the rollback", pods)
	again := slowest(t, "again", upgrade)
	undisturbed(t, "the second upgrade", pods)
	t.Logf(
		"of gangs submitted one after the other, the slowest takes %.1f s, %.1f s during a rollback, and %.1f s during an upgrade",
		quiet.Seconds(),
		back.Seconds(),
		again.Seconds(),
	)
	if most := max(back, again); most-quiet > delay {
		t.Errorf("a gang takes %v longer, want at most %v", most-quiet, delay)
	}
	helm(t, "history", "lockstep", "--namespace", namespace())
	uninstall(t, "helm", namespace())
	undisturbed(t, "the removal", pods)
	endOf(t, "running")
}

// failing upgrades to images that no node can get, with a CRD that differs: the Job that applies CRDs never runs. Its
// account must not stay.
func failing(t *testing.T, chart string) {
	t.Helper()
	const change = "image.tag=none,image.pullPolicy=Never"
	in := []string{"--namespace", namespace(), "--wait", "--timeout", "15s"}
	args := []string{"upgrade", "lockstep", chart, "--reset-then-reuse-values", "--set", change}
	if _, err := run(t, "helm", append(args, in...)...); err == nil {
		t.Error("helm upgrades to images that are not there")
	}
	rights := kubectl(t, "get", "clusterrole,clusterrolebinding", "lockstep-crds", "--ignore-not-found", "-o", "name")
	account := kubectl(
		t,
		"get",
		"serviceaccount",
		"-n",
		namespace(),
		"lockstep-crds",
		"--ignore-not-found",
		"-o",
		"name",
	)
	if rights+account != "" {
		t.Errorf("an upgrade that failed leaves %s%s", rights, account)
	}
}

// pause does nothing for a while.
func pause() error { time.Sleep(time.Second); return nil }

// turn lets a gang wait for another one and ends the other while do runs. It returns the time from then until the gang
// runs.
func turn(t *testing.T, name string, do func() error) time.Duration {
	t.Helper()
	submit(t, name+"-holder", "20m", 4)
	eventually(t, time.Minute, "the gang that holds the room", func() bool { return runs(t, name+"-holder") })
	submit(t, name, "1s", 4)
	eventually(
		t,
		time.Minute,
		"the gang that waits",
		func() bool { return len(podsOf(t, name, corev1.PodPending)) == 2 },
	)
	done := make(chan error, 1)
	go func() { done <- do() }()
	// By then Helm has replaced the Deployments, and the first pods have been exchanged.
	time.Sleep(8 * time.Second)
	kubectl(t, "delete", "trainjob", name+"-holder", "--timeout=60s")
	free := time.Now()
	eventually(t, time.Minute, "the gang's turn", func() bool { return started(t, name) })
	took := time.Since(free)
	if err := <-done; err != nil {
		explain(t)
		t.Fatal(err)
	}
	eventually(t, time.Minute, "its end", func() bool { return completed(t, name) })
	return took
}

// slowest submits gangs one after the other while do runs, and returns the longest time from the command that submits a
// gang, retried until it is admitted, to ranks that run.
func slowest(t *testing.T, name string, do func() error) time.Duration {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	var most time.Duration
	for count := 0; ; count++ {
		select {
		case err := <-done:
			if err != nil {
				explain(t)
				t.Fatal(err)
			}
			t.Logf("%d gangs were submitted", count)
			return most
		default:
		}
		job, began := fmt.Sprintf("%s-%d", name, count), time.Now()
		file := manifest(t, job, "1s", 1)
		eventually(t, time.Minute, "the creation of "+job,
			func() bool { _, err := run(t, "kubectl", "apply", "-f", file); return err == nil })
		eventually(t, time.Minute, "the start of "+job, func() bool { return started(t, job) })
		most = max(most, time.Since(began))
	}
}
