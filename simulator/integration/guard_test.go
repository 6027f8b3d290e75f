package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/controller/guard"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

var (
	policies = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
	}
	policyBindings = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
	}
)

// guardOf tests the policies for a release, as the controller itself does at its start.
func guardOf(t *testing.T, release render.Release, namespaces ...string) guard.Guard {
	t.Helper()
	client := func(config *rest.Config) kubernetes.Interface {
		made, err := gangapi.Client(config, offered().API())
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	return guard.Guard{
		Controller: client(as(release.Account())),
		Stranger:   client(as("system:serviceaccount:" + release.Namespace + ":" + guard.Account)),
		API:        offered().API(),
		Namespace:  release.Namespace,
		Namespaces: namespaces,
		Patience:   5 * time.Second,
	}
}

// applyRendered applies the roles, accounts and policies of a release, but those of its scheduler: the one of the
// cluster works on.
func applyRendered(t *testing.T, release render.Release, only func(*unstructured.Unstructured) bool) {
	t.Helper()
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rendered.Objects {
		kind := object.GetKind()
		guards := kind == "ServiceAccount" || strings.Contains(kind, "Role") ||
			strings.Contains(kind, "AdmissionPolicy")
		if !guards || strings.HasPrefix(object.GetName(), "lockstep-scheduler") || !only(object) {
			continue
		}
		if err := shared.Apply(context.WithoutCancel(t.Context()), object); err != nil {
			t.Fatal(err)
		}
	}
}

// paused stops the cluster's controller until the test ends: without its rights it would complain.
func paused(t *testing.T) {
	t.Helper()
	t.Cleanup(pause(t, "lockstep-controller"))
}

// pause stops a component of the cluster until it is resumed.
func pause(t *testing.T, name string) (resume func()) {
	t.Helper()
	at := slices.IndexFunc(shared.Components(), func(c cluster.Component) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("no %s runs", name)
	}
	pid := shared.Components()[at].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
}

// restored puts the shipped policies back when the test ends, and waits until they hold.
func restored(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		applyRendered(t, render.Default(), func(*unstructured.Unstructured) bool { return true })
		testcluster.Within(t, 20*time.Second, "the shipped policies", func() bool {
			return guardOf(t, render.Default()).Verify(context.WithoutCancel(t.Context())) == nil
		})
	})
}

// Each policy in turn is deleted, is left without its binding, or is rendered for another account: the guard finds it,
// names it, and the controller does not start.
func TestGuard_FindsEachPolicyThatDoesNothing(t *testing.T) {
	paused(t)
	restored(t)
	whole := guardOf(t, render.Default())
	if err := whole.Verify(t.Context()); err != nil {
		t.Fatalf("the shipped policies do not hold: %v", err)
	}
	remove := func(resource schema.GroupVersionResource) func(*testing.T, string) {
		return func(t *testing.T, policy string) {
			t.Helper()
			if err := shared.Dynamic.Resource(resource).
				Delete(t.Context(), policy, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	rename := func(t *testing.T, policy string) {
		t.Helper()
		applyRendered(
			t,
			render.Release{Name: "lockstep", Namespace: "elsewhere"}.With("manager.serviceAccount", "somebody"),
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == policy
			},
		)
	}
	all := []string{
		"gangtimes.lockstep.dev",
		"trainjobowners.lockstep.dev",
		"belongings.lockstep.dev",
		"trainerleases.lockstep.dev",
		"componentpriorities.lockstep.dev",
	}
	if offered() == probe.Resources {
		all = append(all, "gangpriorities.lockstep.dev", "systempriorities.lockstep.dev")
	}
	for name, c := range map[string]struct {
		spoil    func(*testing.T, string)
		policies []string
	}{
		"deleted": {remove(policies), all},
		"unbound": {remove(policyBindings), all},
		"another": {rename, []string{"gangtimes.lockstep.dev", "belongings.lockstep.dev", "trainerleases.lockstep.dev"}},
	} {
		for _, policy := range c.policies {
			t.Run(name+"/"+policy, func(t *testing.T) {
				restored(t)
				c.spoil(t, policy)
				found := whole
				found.Patience = 0
				testcluster.Within(t, 10*time.Second, "the guard's finding", func() bool {
					err := found.Verify(t.Context())
					return errors.Is(err, guard.ErrOpen) && strings.Contains(err.Error(), policy)
				})
				if name != "unbound" || *long {
					refusesToStart(t, policy)
				}
			})
		}
	}
}

// refusesToStart runs the controller with the chart's settings, and expects it to end with one line that names the
// policy, and exit code 2.
func refusesToStart(t *testing.T, policy string) {
	t.Helper()
	binaries, err := cluster.Build(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	controller := exec.CommandContext(
		t.Context(),
		binaries.Controller,
		"--kubeconfig="+filepath.Join(
			shared.Dir(),
			"config",
			"controller.kubeconfig",
		),
		"--webhook-port=0",
		"--guard-patience=2s",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=127.0.0.1:"+port,
		"--leader-elect=true",
	)
	out, err := controller.CombinedOutput()
	var exit *exec.ExitError
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(last, policy) ||
		!strings.Contains(
			last,
			"--namespace lockstep-system --reuse-values --set manager.serviceAccount=lockstep-controller",
		) {
		t.Errorf("it ends with %v and says\n%s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// Rendered for another namespace and account, roles and policies hold for that installation.
func TestGuard_HoldsForAnotherInstallation(t *testing.T) {
	paused(t)
	restored(t)
	other := render.Release{Name: "lockstep", Namespace: "gpu-system"}.With("manager.serviceAccount", "trainer-bot")
	makeNamespace(t, other.Namespace)
	applyRendered(t, other, func(*unstructured.Unstructured) bool { return true })
	testcluster.Within(t, 20*time.Second, "the policies for "+fmt.Sprint(other), func() bool {
		err := guardOf(t, other).Verify(t.Context())
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	before := guardOf(t, render.Default())
	before.Patience = 0
	if before.Verify(t.Context()) == nil {
		t.Error("they still hold for the installation that was replaced")
	}
}
