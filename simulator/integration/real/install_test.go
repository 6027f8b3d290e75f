package real_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/cluster"
	"github.com/lockstep-project/lockstep/simulator/realnode"
)

// What an installation may take: from the command to a gang that runs, when images are loaded, and what an upgrade may add to the wait of a gang.
const (
	firstGang = 90 * time.Second
	delay     = 5 * time.Second
)

// The life of an installation on real nodes, by the commands of its user. The output is the transcript.
func TestAnInstallationLives(t *testing.T) {
	packed := chartOf(t)
	doctor(t)
	began := time.Now()
	// JobSet's image is made here, of its own module.
	jobset := []string{
		"--set",
		"jobset.image.repository=" + realnode.Registry + "/jobset,jobset.image.tag=" + realnode.Tag,
	}
	in := []string{"--namespace", namespace(), "--wait", "--timeout", "3m"}
	helm(t, slices.Concat([]string{"install", "lockstep", packed, "--create-namespace"}, in, jobset)...)
	submit(t, "first", "20s", 1)
	eventually(t, 2*time.Minute, "the first gang", func() bool { return runs(t, "first") })
	took := time.Since(began)
	t.Logf("the first gang runs %.0f s after helm was started", took.Seconds())
	if took > firstGang {
		t.Errorf("the first gang runs after %v, want at most %v", took, firstGang)
	}
	doctor(t)
	kubectl(t, "get", "pods", "-A", "-o", "wide")
	eventually(t, 2*time.Minute, "the end of the first gang", func() bool { return completed(t, "first") })
	kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=first", "--prefix")

	submit(t, "running", "20m", 4)
	eventually(t, time.Minute, "a gang that runs on", func() bool { return runs(t, "running") })
	before := podsOf(t, "running", "")
	usual := turn(t, "usual")
	const crd = "trainjobs.trainer.kubeflow.org"
	schema := []string{"get", "crd", crd, "-o", `jsonpath={.metadata.annotations.lockstep\.dev/schema}`}
	now := kubectl(t, schema...)
	kubectl(t, "annotate", "crd", crd, "lockstep.dev/schema=older", "--overwrite")
	quiet := slowest(t, "quiet", func() error { time.Sleep(10 * time.Second); return nil })
	upgrading := slowest(t, "upgrading", func() error {
		_, err := run(t, "helm", slices.Concat([]string{"upgrade", "lockstep", packed}, in, jobset, []string{
			"--set", "scheduler.pluginArgs.GangPermit.grace=90s", "--set", "manager.podAnnotations.upgraded=yes",
		})...)
		time.Sleep(3 * time.Second) // the pods of before end
		return err
	})
	t.Logf(
		"a gang starts %.1f s after its room is free; of gangs submitted one after the other, the slowest takes %.1f s, and %.1f s while "+
			"all pods of Lockstep are replaced",
		usual.Seconds(),
		quiet.Seconds(),
		upgrading.Seconds(),
	)
	if upgrading-quiet > delay {
		t.Errorf("an upgrade delays a gang by %v, want at most %v", upgrading-quiet, delay)
	}
	undisturbed(t, "the upgrade", before)
	if after := kubectl(t, schema...); after != now {
		t.Errorf("the upgrade left the CRD of another release: its schema is %s, want %s", after, now)
	}
	helm(t, slices.Concat([]string{"rollback", "lockstep", "1"}, in)...)
	undisturbed(t, "the rollback", before)
	helm(t, "history", "lockstep", "--namespace", namespace())

	helm(t, slices.Concat([]string{"uninstall", "lockstep"}, in)...)
	undisturbed(t, "the removal", before)
	eventually(t, time.Minute, "an empty namespace", func() bool { return len(left(t)) == 0 })
	if held := kubectl(
		t,
		"get",
		"podgroups.scheduling.lockstep.dev",
		"-A",
		"-o",
		"jsonpath={.items[*].metadata.finalizers}",
	); held != "" {
		t.Errorf("PodGroups have finalizers %s, which nobody takes off", held)
	}
	kubectl(t, "delete", "trainjobs", "--all", "--timeout=60s")
	eventually(t, time.Minute, "the end of what ran", func() bool {
		return len(podsOf(t, "running", "")) == 0 &&
			kubectl(t, "get", "podgroups.scheduling.lockstep.dev", "-A", "-o", "name") == ""
	})
}

// slowest submits gangs one after the other while something is done, and returns how long the slowest took from the command that submits it, tried until
// it is let in, to ranks that run.
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
		eventually(
			t,
			time.Minute,
			"the creation of "+job,
			func() bool { _, err := run(t, "kubectl", "apply", "-f", file); return err == nil },
		)
		eventually(t, time.Minute, "the start of "+job, func() bool { return started(t, job) })
		most = max(most, time.Since(began))
	}
}

// started reports whether both ranks of a job run, or have run.
func started(t *testing.T, name string) bool {
	t.Helper()
	return len(podsOf(t, name, corev1.PodRunning))+len(podsOf(t, name, corev1.PodSucceeded)) == 2
}

// turn lets a gang wait for another one, ends the other, and returns how long it then takes until the gang runs.
func turn(t *testing.T, name string) time.Duration {
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
	kubectl(t, "delete", "trainjob", name+"-holder", "--timeout=60s")
	free := time.Now()
	eventually(t, time.Minute, "the gang's turn", func() bool { return started(t, name) })
	took := time.Since(free)
	eventually(t, time.Minute, "its end", func() bool { return completed(t, name) })
	return took
}

// runs reports whether both ranks of a job run.
func runs(t *testing.T, name string) bool {
	t.Helper()
	return len(podsOf(t, name, corev1.PodRunning)) == 2
}

// left lists what is in the namespace of the release beside what is in every namespace, and what jobs were frozen with.
func left(t *testing.T) []string {
	t.Helper()
	out := command(
		t,
		"kubectl",
		"get",
		"all,configmaps,secrets,leases,serviceaccounts,roles,rolebindings",
		"-n",
		namespace(),
		"-o",
		"name",
	)
	return slices.DeleteFunc(strings.Fields(out), func(name string) bool {
		return name == "configmap/kube-root-ca.crt" || name == "serviceaccount/default" ||
			strings.HasSuffix(name, ".jobset.x-k8s.io")
	})
}

// What is rendered can be applied by kubectl alone, and a second time without a difference, after the CRDs; and all of it goes again.
func TestKubectlAppliesTwice(t *testing.T) {
	manifests, crds := filepath.Join(t.TempDir(), "manifests.yaml"), filepath.Join(t.TempDir(), "crds.yaml")
	for file, args := range map[string][]string{manifests: {"manifests"}, crds: {"crds"}} {
		if err := os.WriteFile(file, []byte(lockstep(t, args...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, "delete", "--ignore-not-found", "-f", crds)
	kubectl(t, "apply", "-f", crds)
	kubectl(t, "wait", "--for=condition=Established", "-f", crds)
	kubectl(t, "apply", "-f", manifests)
	kubectl(t, "-n", namespace(), "rollout", "status", "--timeout=2m", "deployment/lockstep-scheduler")
	kubectl(t, "-n", namespace(), "rollout", "status", "--timeout=2m", "deployment/lockstep-controller")
	// kubectl calls "configured" what has lists in which the API server fills defaults in; the generation says whether anything has changed.
	generations := []string{
		"get",
		"-f",
		manifests,
		"-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}`,
	}
	before := kubectl(t, generations...)
	kubectl(t, "apply", "-f", manifests)
	if after := kubectl(t, generations...); after != before {
		t.Errorf("applied a second time, it is\n%swas\n%s", after, before)
	}
	kubectl(t, "diff", "-f", manifests)
	kubectl(t, "delete", "--ignore-not-found", "-f", manifests, "--timeout=2m")
}

func namespace() string { return render.Default().Namespace }

// chartOf is the chart that make e2e-install has packed for the images.
func chartOf(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(sourceTree(t), "out", "e2e", "lockstep-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("charts in out/e2e: %v (%v); make e2e-install packs it", found, err)
	}
	return found[0]
}

func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := cluster.SourceTree()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// submit creates a TrainJob of two ranks that run so long, with so many GPUs each.
func submit(t *testing.T, name, runs string, gpus int) {
	t.Helper()
	kubectl(t, "apply", "-f", manifest(t, name, runs, gpus))
}

// manifest writes a file with such a TrainJob.
func manifest(t *testing.T, name, runs string, gpus int) string {
	t.Helper()
	job := fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    image: %s
    command: [/usr/bin/rank]
    args: [%s]
    resourcesPerNode: {limits: {%s: %d}}
`, name, realnode.RankImage, runs, gpu, gpus)
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// doctor has the doctor look at the cluster, and fails the test if anything is wrong.
func doctor(t *testing.T) {
	t.Helper()
	t.Logf("$ lockstep doctor\n%s", lockstep(t, "doctor", "--kubeconfig", shared.Kubeconfig()))
}

// lockstep runs the command line of the images.
func lockstep(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(sourceTree(t), "out", "images", "bin", "linux_amd64", "lockstep"), args...).
		Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// helm runs the real one, and kubectl; what they print is the transcript.
func helm(t *testing.T, args ...string) string { t.Helper(); return command(t, "helm", args...) }

func kubectl(t *testing.T, args ...string) string { t.Helper(); return command(t, "kubectl", args...) }

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := run(t, name, args...)
	if err != nil {
		explain(t)
		t.Fatal(err)
	}
	return out
}

// run runs a program of bin, and logs it with what it printed.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), filepath.Join(sourceTree(t), "bin", name), args...)
	child.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(), "HOME="+t.TempDir())
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	began := time.Now()
	err := child.Run()
	t.Logf("$ %s %s\n%s(%.1f s)", name, strings.Join(args, " "), out.String(), time.Since(began).Seconds())
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return out.String(), nil
}

// explain prints what is known of the pods when a test fails.
func explain(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "events", "-A"},
		{"logs", "-n", namespace(), "--prefix", "--tail=15", "-l", "app.kubernetes.io/name"},
	} {
		_, _ = run(t, "kubectl", args...) // it is for the reader
	}
}

// pod is what must not change of a pod that runs.
type pod struct {
	uid      types.UID
	phase    corev1.PodPhase
	node     string
	restarts int32
}

func podsOf(t *testing.T, job string, phase corev1.PodPhase) map[string]pod {
	t.Helper()
	list, err := shared.Client.CoreV1().Pods("default").
		List(t.Context(), metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]pod{}
	for i := range list.Items {
		one := &list.Items[i]
		if phase != "" && one.Status.Phase != phase {
			continue
		}
		of := pod{uid: one.UID, phase: one.Status.Phase, node: one.Spec.NodeName}
		for _, container := range one.Status.ContainerStatuses {
			of.restarts += container.RestartCount
		}
		found[one.Name] = of
	}
	return found
}

func undisturbed(t *testing.T, what string, before map[string]pod) {
	t.Helper()
	after := podsOf(t, "running", "")
	for name, was := range before {
		if is := after[name]; is != was {
			t.Errorf("%s changed pod %s from %v to %v", what, name, was, is)
		}
	}
}

// completed reports whether a TrainJob says that it is complete.
func completed(t *testing.T, name string) bool {
	t.Helper()
	var job struct {
		Status struct{ Conditions []metav1.Condition }
	}
	text, err := exec.CommandContext(t.Context(), filepath.Join(sourceTree(t), "bin", "kubectl"),
		"--kubeconfig="+shared.Kubeconfig(), "get", "trainjob", name, "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(text, &job)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(job.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Complete" && c.Status == metav1.ConditionTrue
	})
}

func eventually(t *testing.T, within time.Duration, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	defer func() { t.Logf("%s: after %.1f s", what, time.Since(began).Seconds()) }()
	for end := began.Add(within); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			explain(t)
			t.Fatalf("%s did not come", what)
		}
	}
}
