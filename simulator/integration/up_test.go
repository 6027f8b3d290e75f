package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// The command itself, as a user runs it: it answers with one JSON object, holds the cluster, refuses a second run on
// the same directory, and when a component dies it names the component and leaves nothing running.
func TestUp_HoldsUntilAComponentDies(t *testing.T) {
	if mode := offered(); mode != probe.Full {
		t.Skip("the command is the same in mode " + string(mode))
	}
	dir := filepath.Join(t.TempDir(), "state")
	answer, out := io.Pipe()
	var stderr bytes.Buffer
	exit := make(chan int, 1)
	go func() {
		exit <- cli.Run(t.Context(),
			[]string{"up", "--hold", "-o", "json", "--dir", dir, "--jobs", "../../manifests/samples/xgboost.yaml"},
			cli.Environment{Out: out, Err: &stderr, Clock: clock.RealClock{}})
		_ = out.Close()
	}()
	var report summary.Report
	decoder := json.NewDecoder(answer)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("decoding the answer: %v\n%s", err, stderr.String())
	}
	if report.Fleet != "gb200-72" || report.Nodes != 74 || report.Mode != "full" || len(report.Components) != 8 {
		t.Errorf("the answer is about %s, %d nodes, mode %s, components %v",
			report.Fleet, report.Nodes, report.Mode, report.Components)
	}
	if len(report.Jobs) != 1 || report.Jobs[0].Outcome != summary.Complete || len(report.Jobs[0].Ranks) != 3 {
		t.Errorf("jobs %+v, want one of three ranks that is complete", report.Jobs)
	}
	if _, err := clientcmd.LoadFromFile(report.Kubeconfig); err != nil {
		t.Errorf("the kubeconfig: %v", err)
	}

	var second bytes.Buffer
	code := cli.Run(t.Context(), []string{"up", "--dir", dir, "--jobs", "../../manifests/samples/xgboost.yaml"},
		cli.Environment{Out: io.Discard, Err: &second, Clock: clock.RealClock{}})
	if code != 2 || !strings.Contains(second.String(), "is the state directory of a running lockstep up") {
		t.Errorf("a second run on a live directory: exit %d, %s", code, second.String())
	}

	kwok := slices.IndexFunc(report.Components, func(c summary.Component) bool { return c.Name == "kwok" })
	if err := syscall.Kill(report.Components[kwok].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case code = <-exit:
	case <-time.After(testcluster.Patience(time.Minute)):
		t.Fatal("the run goes on although a component has died")
	}
	if code != 1 || !strings.Contains(stderr.String(), "lockstep: kwok ended (signal: killed); the end of ") {
		t.Errorf("exit %d, want 1 and a line about kwok:\n%s", code, stderr.String())
	}
	if rest, err := io.ReadAll(decoder.Buffered()); err != nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("stdout goes on after the object: %q, %v", rest, err)
	}
	for _, component := range report.Components {
		if err := syscall.Kill(component.PID, 0); err == nil {
			t.Errorf("%s (process %d) is still running", component.Name, component.PID)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "logs", "kube-apiserver.log")); err != nil {
		t.Errorf("the logs are gone: %v", err)
	}
}

// Ctrl-C while holding is the normal end: exit 0, and every child has ended.
func TestUp_EndsWithCtrlC(t *testing.T) {
	if mode := offered(); mode != probe.Full {
		t.Skip("the command is the same in mode " + string(mode))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	answer, out := io.Pipe()
	var stderr bytes.Buffer
	exit := make(chan int, 1)
	go func() {
		exit <- cli.Run(ctx, []string{
			"up", "--hold", "-o", "json", "--dir", filepath.Join(t.TempDir(), "state"), "--jobs", "../../manifests/samples/xgboost.yaml",
		}, cli.Environment{Out: out, Err: &stderr, Clock: clock.RealClock{}})
		_ = out.Close()
	}()
	var report summary.Report
	if err := json.NewDecoder(answer).Decode(&report); err != nil {
		t.Fatalf("decoding the answer: %v; exit %d:\n%s", err, <-exit, stderr.String())
	}
	interrupt()
	if code := <-exit; code != 0 {
		t.Errorf("exit %d, want 0:\n%s", code, stderr.String())
	}
	for _, component := range report.Components {
		if err := syscall.Kill(component.PID, 0); err == nil {
			t.Errorf("%s (process %d) is still running", component.Name, component.PID)
		}
	}
}
