package real_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

func namespace() string { return render.Default().Namespace }

// chartOf returns the chart that make e2e-install has packed into a folder of out: e2e for this release, previous for
// the one before.
func chartOf(t *testing.T, folder string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(sourceTree(t), "out", folder, "lockstep-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("charts in out/%s: %v (%v); make e2e-install packs it", folder, found, err)
	}
	return found[0]
}

func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// doctor runs lockstep doctor on the cluster, and fails the test if anything is wrong.
func doctor(t *testing.T) {
	t.Helper()
	t.Log(lockstep(t, "doctor", "--kubeconfig", shared.Kubeconfig()))
}

// waiting are the arguments with which helm waits until its change of a namespace's release takes effect.
func waiting(in string) []string { return []string{"--namespace", in, "--wait", "--timeout", "3m"} }

// install installs a chart by a program of bin, with further arguments. JobSet's image is one of make images.
func install(t *testing.T, program, chart string, more ...string) {
	t.Helper()
	in := namespace()
	if at := slices.Index(more, "--namespace"); at >= 0 {
		in = more[at+1]
	}
	args := []string{"install", "lockstep", chart, "--create-namespace", "--set", "jobset.image.repository=jobset"}
	command(t, program, slices.Concat(args, waiting(in), more)...)
}

// uninstall removes the release of a namespace, and waits until the namespace is empty and no PodGroup is held.
func uninstall(t *testing.T, program, in string) {
	t.Helper()
	command(t, program, append([]string{"uninstall", "lockstep"}, waiting(in)...)...)
	eventually(t, time.Minute, "an empty namespace", func() bool { return len(left(t, in)) == 0 })
	held := kubectl(
		t,
		"get",
		"podgroups.scheduling.lockstep.dev",
		"-A",
		"-o",
		"jsonpath={.items[*].metadata.finalizers}",
	)
	if held != "" {
		t.Errorf("PodGroups have finalizers %s, and no scheduler takes them off", held)
	}
}

// left lists the objects of a namespace, without those of every namespace and the frozen copies of jobs.
func left(t *testing.T, in string) []string {
	t.Helper()
	const kinds = "all,configmaps,secrets,leases,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets"
	out := kubectl(t, "get", kinds, "-n", in, "-o", "name")
	return slices.DeleteFunc(strings.Fields(out), func(name string) bool {
		return name == "configmap/kube-root-ca.crt" || name == "serviceaccount/default" ||
			strings.HasSuffix(name, ".jobset.x-k8s.io")
	})
}

// lockstep runs the command line of the images.
func lockstep(t *testing.T, args ...string) string {
	t.Helper()
	program := filepath.Join(sourceTree(t), "out", "images", "bin", "linux_amd64", "lockstep")
	child := exec.CommandContext(t.Context(), program, args...)
	var said bytes.Buffer
	child.Stderr = &said
	out, err := child.Output()
	t.Logf("$ lockstep %s\n%s", strings.Join(args, " "), said.String())
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// helm runs the real helm, and kubectl the real kubectl; their output is the transcript.
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

// run runs a program of bin, and logs it with its output.
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

// explain prints the state of the pods when a test fails.
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
