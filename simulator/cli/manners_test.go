package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
)

// TestRun_Interrupted ends with the code that shells give a process that Ctrl-C ends, and with one line.
func TestRun_Interrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, stderr bytes.Buffer
	dir := t.TempDir()
	code := cli.Run(ctx, []string{"simulate", "--fleet", "c1", "--trace", "philly", "--out", filepath.Join(dir, "out")},
		cli.Environment{Out: &out, Err: &stderr, Clock: clock.RealClock{}})
	if code != 130 || !strings.HasSuffix(stderr.String(), "lockstep: interrupted\n") {
		t.Errorf("exit %d, want 130: %s", code, stderr.String())
	}
}

// TestCompletion_OffersValues completes commands, flags and their values.
func TestCompletion_OffersValues(t *testing.T) {
	for want, args := range map[string][]string{
		"explain\t": {"exp"},
		"--hold\t":  {"up", "--ho"},
		"c5\n":      {"up", "--fleet", "c"},
		"groups\n":  {"up", "--mode", ""},
		"1.36\n":    {"up", "--kubernetes", "1"},
	} {
		code, out, _ := execute(t, append([]string{"__complete"}, args...)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d, %q lacks %q", args, code, out, want)
		}
	}
	if code, out, _ := execute(t, "completion", "bash"); code != 0 || !strings.Contains(out, "complete -o default") {
		t.Errorf("the script for bash: exit %d, %d bytes", code, len(out))
	}
}

// TestExplain_RefusesUnknownFields checks that the line of a fault in a submitted job is reported before any cluster is
// asked.
func TestExplain_RefusesUnknownFields(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := strings.Replace(trainJob, "RUNTIME}", "torch-distributed}, trainer: {numNodez: 2}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := execute(t, "explain", "--with-job", file)
	want := "lockstep: " + file + ":4: TrainJob has no field spec.trainer.numNodez; correct or remove it\n"
	if code != 2 || out != "" || stderr != want {
		t.Errorf("exit %d: %s%s\nwant %s", code, out, stderr, want)
	}
}

// TestExplain_FindsTheHeldCluster asks the cluster that lockstep up holds in this directory if none is named, and none
// that is not held.
func TestExplain_FindsTheHeldCluster(t *testing.T) {
	l := newLab(t, draw(t, "r1: ...."), "")
	content, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	if err := os.Mkdir(".lockstep", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(".lockstep/kubeconfig", content, 0o600); err != nil {
		t.Fatal(err)
	}
	marker, err := os.Create(".lockstep/lockstep.pid")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := l.explain(t, "queue"); code != 2 || !strings.Contains(stderr, "there is no kubeconfig") {
		t.Errorf("nothing holds the cluster: exit %d: %s", code, stderr)
	}
	if err := syscall.Flock(int(marker.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	defer marker.Close()
	code, out, stderr := l.explain(t, "queue")
	if code != 0 || stderr != "lockstep: asking the cluster that lockstep up holds in .lockstep\n" {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// TestExplain_AJobThatIsOver says so while its PodGroup is still there, and the queue does not list it.
func TestExplain_AJobThatIsOver(t *testing.T) {
	objects := draw(t, "r1: ....")
	objects.PodGroups = append(objects.PodGroups, &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: "over", Namespace: "default",
			OwnerReferences: []metav1.OwnerReference{
				{
					APIVersion: "trainer.kubeflow.org/v1alpha1",
					Kind:       "TrainJob",
					Name:       "over",
					UID:        "u",
					Controller: new(true),
				},
			},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2},
		}},
	})
	objects.Pods = append(objects.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "over-node-0-0", Namespace: "default"},
		Status:     corev1.PodStatus{Phase: corev1.PodSucceeded},
	})
	l := newLab(t, objects, idle)
	for _, kind := range []string{"trainjob", "podgroup"} {
		code, out, stderr := l.explain(t, kind, "over")
		if code != 0 || !strings.HasPrefix(out, "default/over is over: Complete (all jobs completed)") || stderr != "" {
			t.Errorf("%s: exit %d: %s%s", kind, code, out, stderr)
		}
	}
	if code, out, stderr := l.explain(t, "queue"); code != 0 || strings.Contains(out, "over") {
		t.Errorf("the queue: exit %d: %s%s", code, out, stderr)
	}
}
