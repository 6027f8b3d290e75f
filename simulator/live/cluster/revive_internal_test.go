package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// A scheduler that has lost its lease, and is not started again yet, is stopped like one that runs.
func TestStopRelease_BetweenTwoLivesOfTheScheduler(t *testing.T) {
	state, err := openState(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.release() })
	c := &Cluster{
		plan: plan{state: state}, probes: &http.Client{}, died: make(chan *DeathError, 1),
		spawner: newSpawner(t.Context()),
	}
	marker := state.path("tmp", "lost")
	script := "if [ -e " + marker + " ]; then exec sleep 600; fi; touch " + marker + "; exit 1"
	c.launching.Lock()
	started, err := c.launchAll(t.Context(), []component{
		{name: controllerName, binary: "/bin/sleep", args: []string{"600"}},
		{name: schedulerName, binary: "/bin/sh", args: []string{"-c", script}, revivable: true},
	})
	c.launching.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	first := started[1].pid()
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return c.Scheduler().PID != first, nil })
	if err != nil {
		t.Fatalf("the scheduler does not end: %v", err)
	}
	if err := c.StopRelease(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * revivalPause) // for a scheduler that would be started in spite of the stop
	if left := c.Components(); len(left) > 0 {
		t.Errorf("after the stop there are %v", left)
	}
	if err := c.StopRelease(t.Context()); !errors.Is(err, errNoController) {
		t.Errorf("stopping twice: %v", err)
	}
}
