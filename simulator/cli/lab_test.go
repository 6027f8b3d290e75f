package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/scheduler/whatif/whatiftest"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture/capturetest"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
)

// levels is the configuration of the scheduler whose fleet is drawn.
const levels = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: lockstep-scheduler
  plugins: {multiPoint: {enabled: [{name: GangPlacement}]}}
  pluginConfig:
  - name: GangPlacement
    args: {levels: [{key: example.com/block}, {key: example.com/rack}]}
`

// lab is a cluster that answers, with the objects of a picture and the shipped runtimes.
type lab struct {
	dir, config string
	server      *capturetest.Server
}

func newLab(t *testing.T, objects whatif.Objects, more string) *lab {
	t.Helper()
	server := capturetest.New(t, more)
	server.Served = []string{"podgroups", "pods"}
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range catalog {
		server.Add(t, r.Object)
	}
	add := func(kind, version string, object any) {
		t.Helper()
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		content["kind"], content["apiVersion"] = kind, version
		server.Add(t, content)
	}
	for _, o := range objects.Nodes {
		add("Node", "v1", o)
	}
	for _, o := range objects.Pods {
		add("Pod", "v1", o)
	}
	for _, o := range objects.PodGroups {
		add("PodGroup", "scheduling.k8s.io/v1beta1", o)
	}
	const resource = "resource.k8s.io/v1"
	for _, o := range objects.Devices.Slices {
		add("ResourceSlice", resource, o)
	}
	for _, o := range objects.Devices.Classes {
		add("DeviceClass", resource, o)
	}
	for _, o := range objects.Devices.Claims {
		add("ResourceClaim", resource, o)
	}
	for _, o := range objects.Devices.Templates {
		add("ResourceClaimTemplate", resource, o)
	}
	l := &lab{dir: t.TempDir(), server: server}
	l.config = l.write(t, "scheduler.yaml", levels)
	t.Setenv("KUBECONFIG", server.Kubeconfig(t))
	return l
}

func (l *lab) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// explain asks at the instant of the pictures.
func (l *lab) explain(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	return executeAt(t, whatiftest.Now(), append([]string{"explain", "--scheduler-config", l.config}, args...)...)
}

// executeAt runs a command at an instant.
func executeAt(t *testing.T, now time.Time, args ...string) (code int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(
		t.Context(),
		args,
		cli.Environment{Out: &stdout, Err: &stderr, Clock: clocktesting.NewFakeClock(now)},
	)
	return code, stdout.String(), stderr.String()
}

func (l *lab) says(t *testing.T, want string, wantCode int, args ...string) {
	t.Helper()
	code, out, stderr := l.explain(t, args...)
	diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(out))
	if diff != "" || code != wantCode || stderr != "" {
		t.Errorf(
			"%s: exit %d, want %d; stderr %s (-want +got):\n%s",
			strings.Join(args, " "),
			code,
			wantCode,
			stderr,
			diff,
		)
	}
}

func draw(t *testing.T, picture string) whatif.Objects {
	t.Helper()
	objects, err := whatiftest.Fleet(picture)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
