package install_test

import (
	"bytes"
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/bundle"
	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/image"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// patience is the time that an action of Helm's may take.
const patience = 2 * time.Minute

// packed is the chart as it is released, JobSet's chart in it.
func packed(t *testing.T, version string) *helmchart.Chart {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset").Output()
	if err != nil {
		t.Fatal(err)
	}
	made, err := bundle.Chart(chart.Files, image.Source{Version: version, Created: time.Unix(1, 0)},
		filepath.Join(strings.TrimSpace(string(module)), "charts", "jobset"))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// values are those of an installation beside the JobSet that runs in this cluster.
func values(more map[string]any) map[string]any {
	all := map[string]any{"jobset": map[string]any{"install": false}}
	maps.Copy(all, more)
	return all
}

// helm returns the configuration of actions for the cluster.
func helm(t *testing.T) *action.Configuration {
	t.Helper()
	kubeconfig, namespace := shared.Kubeconfig(), render.Default().Namespace
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	configuration := action.NewConfiguration()
	if err := configuration.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return configuration
}

// onLoopback has the API server call webhooks where they are answered: a Service leads nowhere here.
type onLoopback struct{}

func (onLoopback) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := render.Objects(rendered.Bytes())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, object := range objects {
		if err := shared.OnLoopback(object); err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n" + string(text))
	}
	return &out, nil
}

func install(t *testing.T, made *helmchart.Chart, values map[string]any) (*release.Release, error) {
	t.Helper()
	act := action.NewInstall(helm(t))
	act.ReleaseName, act.Namespace, act.CreateNamespace = render.Default().Name, render.Default().Namespace, true
	act.ServerSideApply, act.WaitStrategy, act.Timeout, act.PostRenderer = true, kube.HookOnlyStrategy, patience, onLoopback{}
	done, err := act.RunWithContext(t.Context(), made, values)
	installed, _ := done.(*release.Release)
	return installed, err
}

func upgrade(t *testing.T, made *helmchart.Chart, values map[string]any) *release.Release {
	t.Helper()
	act := action.NewUpgrade(helm(t))
	act.Namespace = render.Default().Namespace
	act.WaitStrategy, act.Timeout, act.PostRenderer = kube.HookOnlyStrategy, patience, onLoopback{}
	done, err := act.RunWithContext(t.Context(), render.Default().Name, made, values)
	if err != nil {
		t.Fatal(err)
	}
	return done.(*release.Release)
}

func rollBack(t *testing.T, revision int) {
	t.Helper()
	act := action.NewRollback(helm(t))
	act.Version, act.WaitStrategy, act.Timeout = revision, kube.HookOnlyStrategy, patience
	if err := act.Run(render.Default().Name); err != nil {
		t.Fatal(err)
	}
}

func uninstall(t *testing.T) {
	t.Helper()
	act := action.NewUninstall(helm(t))
	act.WaitStrategy, act.Timeout, act.DeletionPropagation = kube.HookOnlyStrategy, patience, "foreground"
	if _, err := act.Run(render.Default().Name); err != nil {
		t.Fatal(err)
	}
}

// hooks are the names of the Jobs that Helm ran with an action, and waited for.
func hooks(of *release.Release, event release.HookEvent) []string {
	var names []string
	for _, hook := range of.Hooks {
		for _, on := range hook.Events {
			if on == event && hook.Kind == "Job" && hook.LastRun.Phase == release.HookPhaseSucceeded {
				names = append(names, hook.Name)
			}
		}
	}
	return names
}

// background is a context that outlives the test.
func background(t *testing.T) context.Context { t.Helper(); return context.WithoutCancel(t.Context()) }
