package workload_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
)

// TestWorkloads runs the scripts in testdata, each in an empty folder of its own. Commands:
//
//	file name=PATH           writes a file
//	load paths=(a,b)         loads them; prints the objects in order, or the error
//	check known=(a,b)        asks whether the runtimes of the last load exist, the cluster having a and b
//	run job=NAME jobs=(a,b)  prints a job of the last load with its run time set on replicated jobs a and b
func TestWorkloads(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		t.Helper()
		folder := t.TempDir()
		var loaded workload.Workload
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var answer string
			switch d.Cmd {
			case "file":
				write(t, filepath.Join(folder, values(d, "name")[0]), d.Input)
			case "load":
				paths := values(d, "paths")
				for i := range paths {
					paths[i] = filepath.Join(folder, paths[i])
				}
				got, err := workload.Load(paths)
				loaded = got
				answer = list(loaded) + refusal(t, err)
			case "check":
				answer = check(t, loaded, values(d, "known"))
			case "run":
				answer = withRunTime(t, loaded, values(d, "job")[0], values(d, "jobs"))
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return strings.ReplaceAll(answer, folder+"/", "")
		})
	})
}

func values(d *datadriven.TestData, key string) []string {
	for _, arg := range d.CmdArgs {
		if arg.Key == key {
			return slices.Clone(arg.Vals)
		}
	}
	return nil
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func list(w workload.Workload) string {
	var b strings.Builder
	for _, object := range w.Objects {
		fmt.Fprintf(&b, "%s at %s\n", object, object.Where())
	}
	return b.String()
}

func refusal(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	if !badinput.Is(err) {
		t.Errorf("%T is not bad input: %v", err, err)
	}
	return err.Error() + "\n"
}

func check(t *testing.T, w workload.Workload, known []string) string {
	t.Helper()
	err := w.CheckRuntimes(func(kind, namespace, name string) bool {
		return slices.Contains(known, strings.Join([]string{kind, namespace, name}, "/"))
	}, known...)
	if err != nil {
		return refusal(t, err)
	}
	return "every runtime exists\n"
}

func withRunTime(t *testing.T, w workload.Workload, name string, replicatedJobs []string) string {
	t.Helper()
	for _, job := range w.TrainJobs() {
		if job.Object.GetName() != name {
			continue
		}
		before := job.Object.DeepCopy()
		patched, err := job.WithRunTime(replicatedJobs)
		if err != nil {
			return refusal(t, err)
		}
		if diff := cmp.Diff(before, job.Object); diff != "" {
			t.Errorf("the job itself was changed (-before +after):\n%s", diff)
		}
		text, err := yaml.Marshal(patched.Object)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Fatalf("no TrainJob %s", name)
	return ""
}

func TestRunTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: quiet}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: said, annotations: {simulator.lockstep.dev/run-time: 1m30s}}
`)
	loaded, err := workload.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{workload.DefaultRunTime, 90 * time.Second} {
		if got, err := loaded.TrainJobs()[i].RunTime(); err != nil || got != want {
			t.Errorf("job %d runs %s (%v), want %s", i, got, err, want)
		}
	}
}

func TestReplicatedJobs_OfTheJobsRuntime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine, namespace: team}
spec: {template: {spec: {replicatedJobs: [{name: launcher}, {name: node}]}}}
---
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata: {name: train, namespace: team}
spec: {runtimeRef: {kind: TrainingRuntime, name: mine}}
`)
	loaded, err := workload.Load([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	ref := workload.RuntimeOf(loaded.TrainJobs()[0].Object)
	runtime, found := loaded.Runtime(ref)
	if !found || ref.String() != "TrainingRuntime team/mine" {
		t.Fatalf("runtime %s: found %t", ref, found)
	}
	if diff := cmp.Diff([]string{"launcher", "node"}, workload.ReplicatedJobs(runtime.Object)); diff != "" {
		t.Errorf("replicated jobs (-want +got):\n%s", diff)
	}
}
