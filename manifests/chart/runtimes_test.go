package chart_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
)

// perGPU is the helper of the XGBoost runtime, as a file.
func perGPU(t *testing.T) string {
	t.Helper()
	text, err := chart.Files.ReadFile("runtimes/xgboost-distributed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var runtime struct {
		Spec struct {
			Template struct {
				Spec struct {
					ReplicatedJobs []struct {
						Template struct {
							Spec struct{ Template corev1.PodTemplateSpec }
						}
					}
				}
			}
		}
	}
	if err = yaml.Unmarshal(text, &runtime); err != nil {
		t.Fatal(err)
	}
	pod := runtime.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	file := filepath.Join(t.TempDir(), "per-gpu")
	if err = os.WriteFile(file, []byte(pod.InitContainers[0].Env[0].Value), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// start runs the helper on the second node with four GPUs and returns what its workers wrote.
func start(t *testing.T, workers, program string) ([]string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	command := exec.CommandContext(t.Context(), perGPU(t), "sh", "-c", program, "worker", "a b")
	// A worker that was only just forked when it is to end may miss the signal. With the second that is the default it never is.
	command.Env = append(os.Environ(), "DMLC_TASK_ID=1", "WORKERS_PER_NODE="+workers, "POLL=0.5", "OUT="+out)
	err := command.Run()
	text, _ := os.ReadFile(out)
	lines := strings.Fields(string(text))
	slices.Sort(lines)
	return lines, err
}

func TestEachGPUHasAWorkerWithATaskOfItsOwn(t *testing.T) {
	const say = `echo "$DMLC_TASK_ID/$CUDA_VISIBLE_DEVICES/$(test "$1" = "a b" && echo intact)" >> "$OUT"`
	lines, err := start(t, "4", say)
	if want := []string{
		"4/0/intact",
		"5/1/intact",
		"6/2/intact",
		"7/3/intact",
	}; err != nil ||
		!slices.Equal(lines, want) {
		t.Errorf("workers %v (%v), want %v", lines, err, want)
	}
	if lines, err = start(t, "0", say); err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "1/") {
		t.Errorf("workers %v (%v) on a node without GPUs, want the one whose task is the node's", lines, err)
	}
}

// A worker that fails must not leave the others waiting for it.
func TestTheFirstWorkerThatFailsEndsTheOthers(t *testing.T) {
	_, err := start(t, "4", `test "$DMLC_TASK_ID" = 6 && exit 7; exec sleep 600`)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("%v, want exit code 7", err)
	}
}
