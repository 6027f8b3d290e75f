package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/scheduler/app"
)

// A cluster that answers but serves no PodGroups: the command must find it by each of the ways to name it.
func TestCommand_UsesTheGivenCluster(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}))
	defer server.Close()
	right := write("right", kubeconfig(server.URL))
	wrong := write("wrong", kubeconfig("http://127.0.0.1:1"))
	head := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	silent := write("silent.yaml", head)
	says := write("says.yaml", head+"clientConnection: {kubeconfig: "+right+"}\n")

	for name, test := range map[string]struct {
		args []string
		env  string
	}{
		"flag":                         {[]string{"--kubeconfig", right}, wrong},
		"environment":                  {nil, right},
		"file":                         {[]string{"--config", says, "--kubeconfig", wrong}, wrong},
		"flag beside a silent file":    {[]string{"--config", silent, "--kubeconfig", right}, wrong},
		"environment, a silent file":   {[]string{"--config", silent}, right},
		"master beside the kubeconfig": {[]string{"--master", server.URL, "--kubeconfig", wrong}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			before := asked
			command, clean := app.Command(t.Context())
			defer clean()
			command.SetArgs(test.args)
			command.SilenceErrors, command.SilenceUsage = true, true
			err := command.Execute()
			if asked == before || !errors.Is(err, gangapi.ErrNoAPI) {
				t.Fatalf("the cluster was asked %d times; the error is %v", asked-before, err)
			}
			var stderr bytes.Buffer
			if code := app.ExitCode(err, &stderr); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if line := stderr.String(); strings.Count(line, "\n") != 1 ||
				!strings.Contains(line, "apply manifests/chart/crds") {
				t.Errorf("printed %q", line)
			}
		})
	}
}

// The stored state of the installation is read from the namespace of the lease: that of the release.
func TestCommand_NamespaceIsThatOfTheLease(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		http.NotFound(w, r)
	}))
	defer server.Close()
	t.Setenv("KUBECONFIG", "")
	for namespace, election := range map[string]string{
		"lockstep-system": "", "gpu-system": "leaderElection: {resourceNamespace: gpu-system}\n",
	} {
		paths = nil
		file := filepath.Join(t.TempDir(), "profile.yaml")
		content := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + election
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		command, clean := app.Command(t.Context())
		command.SetArgs([]string{"--config", file, "--master", server.URL})
		command.SilenceErrors, command.SilenceUsage = true, true
		err := command.Execute()
		clean()
		if want := "/api/v1/namespaces/" + namespace + "/configmaps/" + gangapi.Memory; !slices.Contains(paths, want) {
			t.Errorf("it asked for %v (%v), want %s", paths, err, want)
		}
	}
}

func kubeconfig(server string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: c, cluster: {server: %q}}],
users: [{name: u, user: {}}], contexts: [{name: x, context: {cluster: c, user: u}}]}`, server)
}

func TestExitCode_SuccessAndFault(t *testing.T) {
	var stderr bytes.Buffer
	if app.ExitCode(nil, &stderr) != 0 || app.ExitCode(errors.New("broken"), &stderr) != 1 {
		t.Error("success is not 0 or a fault is not 1")
	}
	if stderr.String() != "Error: broken\n" {
		t.Errorf("printed %q", stderr.String())
	}
}

func TestSetGates_FollowTheCluster(t *testing.T) {
	for _, offer := range []probe.Offer{
		{Mode: probe.Groups, Off: []string{"TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims"}}, {Mode: probe.Full},
	} {
		gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
		if err := app.SetGates(gates, offer); err != nil {
			t.Fatal(err)
		}
		if !gates.Enabled(features.GenericWorkload) || !gates.Enabled(features.TopologyAwareWorkloadScheduling) {
			t.Errorf("mode %s: the gates of gangs are off", offer.Mode)
		}
		if got := gates.Enabled(features.DRAWorkloadResourceClaims); got != offer.Claims() {
			t.Errorf("mode %s: shared claims are %v", offer.Mode, got)
		}
		// A flag is parsed later and wins.
		if err := gates.Set("SchedulerAsyncAPICalls=false"); err != nil {
			t.Fatal(err)
		}
		if gates.Enabled(features.SchedulerAsyncAPICalls) || !gates.Enabled(features.GenericWorkload) {
			t.Errorf("mode %s: a flag does not win, or resets the others", offer.Mode)
		}
	}
}
