package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/controller/guard"
	"github.com/lockstep-project/lockstep/manifests"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/cluster"
)

var (
	policies = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
	}
	policyBindings = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
	}
)

// guardOf tests the policies for an installation, as the controller itself does at its start.
func guardOf(t *testing.T, installation manifests.Installation) guard.Guard {
	t.Helper()
	client := func(config *rest.Config) kubernetes.Interface {
		made, err := gangapi.Client(config, offered().API())
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	return guard.Guard{
		Controller: client(as(installation.User())),
		Stranger:   client(as("system:serviceaccount:" + installation.Namespace + ":" + guard.Account)),
		API:        offered().API(),
		Namespace:  installation.Namespace,
		Namespaces: installation.Namespaces,
		Patience:   5 * time.Second,
	}
}

// applyRendered applies the roles and policies of the controller for an installation.
func applyRendered(t *testing.T, installation manifests.Installation, only func(*unstructured.Unstructured) bool) {
	t.Helper()
	for _, folder := range []string{"gangs", "controller"} {
		files, err := fs.Glob(manifests.Files, folder+"/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests in %s: %v", folder, err)
		}
		for _, file := range files {
			applyFile(t, file, installation, only)
		}
	}
}

func applyFile(
	t *testing.T,
	file string,
	installation manifests.Installation,
	only func(*unstructured.Unstructured) bool,
) {
	t.Helper()
	content, err := manifests.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := manifests.Render(content, installation)
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendered), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); err != nil {
			return
		}
		if only(&object) {
			if err := shared.Apply(context.WithoutCancel(t.Context()), &object); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// paused stops the cluster's controller until the test ends: without its rights it would complain.
func paused(t *testing.T) {
	t.Helper()
	for _, component := range shared.Components() {
		if component.Name != "lockstep-controller" {
			continue
		}
		if err := syscall.Kill(component.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Kill(component.PID, syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		})
	}
}

// restored puts the shipped policies back when the test ends, and waits until they hold.
func restored(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		applyRendered(t, manifests.Default(), func(*unstructured.Unstructured) bool { return true })
		within(t, 20*time.Second, "the shipped policies", func() bool {
			return guardOf(t, manifests.Default()).Verify(context.WithoutCancel(t.Context())) == nil
		})
	})
}

// Each policy in turn is deleted, is left without its binding, or is rendered for another account: the guard finds it, names
// it, and the controller does not start.
func TestGuard_FindsEachPolicyThatDoesNothing(t *testing.T) {
	paused(t)
	restored(t)
	whole := guardOf(t, manifests.Default())
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
	render := func(t *testing.T, policy string) {
		t.Helper()
		applyRendered(t, manifests.Installation{Namespace: "elsewhere", Account: "somebody"},
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == policy
			})
	}
	for name, c := range map[string]struct {
		spoil    func(*testing.T, string)
		policies []string
	}{
		"deleted": {remove(policies), []string{"gangtimes.lockstep.dev", "trainjobowners.lockstep.dev", "belongings.lockstep.dev"}},
		"unbound": {remove(policyBindings), []string{"gangtimes.lockstep.dev", "trainjobowners.lockstep.dev", "belongings.lockstep.dev"}},
		"another": {render, []string{"gangtimes.lockstep.dev", "belongings.lockstep.dev"}},
	} {
		for _, policy := range c.policies {
			t.Run(name+"/"+policy, func(t *testing.T) {
				restored(t)
				c.spoil(t, policy)
				found := whole
				found.Patience = 0
				within(t, 10*time.Second, "the guard's finding", func() bool {
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

// refusesToStart runs the controller as it is installed, and wants it to end with one line that names the policy, and exit code 2.
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
			"go run ./manifests/cmd/render -namespace lockstep-system -account lockstep-controller",
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
	other := manifests.Installation{Namespace: "gpu-system", Account: "trainer-bot"}
	makeNamespace(t, other.Namespace)
	applyRendered(t, other, func(*unstructured.Unstructured) bool { return true })
	within(t, 20*time.Second, "the policies for "+fmt.Sprint(other), func() bool {
		err := guardOf(t, other).Verify(t.Context())
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	before := guardOf(t, manifests.Default())
	before.Patience = 0
	if before.Verify(t.Context()) == nil {
		t.Error("they still hold for the installation that was replaced")
	}
}
