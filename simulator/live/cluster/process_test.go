package cluster_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func TestDeath_NamesComponentAndQuotesLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kwok.log")
	script := "for i in $(seq 1 40); do echo line $i; done; echo boom >&2; exit 3"
	p, err := cluster.NewSpawner(t.Context()).Start(cluster.NewComponent("kwok", "/bin/sh", "-c", script), log)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	got := p.Death().Error()
	if !strings.HasPrefix(got, "kwok ended (exit status 3); the end of "+log+":\n") {
		t.Errorf("the first line does not name component, state and log:\n%s", got)
	}
	if !strings.HasSuffix(got, "line 40\n  boom") || strings.Contains(got, "line 20\n") {
		t.Errorf("the tail is not the end of the log:\n%s", got)
	}
}

func TestStop_EndsOneChildOnly(t *testing.T) {
	spawner := cluster.NewSpawner(t.Context())
	dir := t.TempDir()
	child, err := spawner.Start(cluster.NewComponent("child", "/bin/sleep", "600"), filepath.Join(dir, "child.log"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := spawner.Start(cluster.NewComponent("other", "/bin/sleep", "600"), filepath.Join(dir, "other.log"))
	if err != nil {
		t.Fatal(err)
	}
	child.Stop(t.Context())
	if err := syscall.Kill(child.PID(), 0); err == nil {
		t.Error("the child is still there")
	}
	select {
	case <-other.Exited():
		t.Error("another child ended too")
	case <-time.After(50 * time.Millisecond):
	}
	other.Stop(t.Context())
}

// A lost lease (1) and a move of gangs (0) end a scheduler that is started again. A panic (2) and a signal are deaths.
func TestRevives(t *testing.T) {
	spawner := cluster.NewSpawner(t.Context())
	for name, test := range map[string]struct {
		script           string
		revivable, ready bool
		want             bool
	}{
		"lost lease":      {"exit 1", true, true, true},
		"move":            {"exit 0", true, true, true},
		"panic":           {"exit 2", true, true, false},
		"signal":          {"kill -9 $$", true, true, false},
		"other component": {"exit 1", false, true, false},
		"early end":       {"exit 1", true, false, true}, // the API server may be away
	} {
		t.Run(name, func(t *testing.T) {
			child := cluster.NewComponent("child", "/bin/sh", "-c", test.script)
			if test.revivable {
				child = cluster.Revivable(child)
			}
			p, err := spawner.Start(child, filepath.Join(t.TempDir(), "child.log"))
			if err != nil {
				t.Fatal(err)
			}
			if test.ready {
				p.Ready()
			}
			<-p.Exited()
			if got := p.Revives(); got != test.want {
				t.Errorf("revives: %t, want %t", got, test.want)
			}
		})
	}
}

func TestStart_FailsOnMissingBinary(t *testing.T) {
	_, err := cluster.NewSpawner(t.Context()).Start(
		cluster.NewComponent("etcd", filepath.Join(t.TempDir(), "etcd")), filepath.Join(t.TempDir(), "etcd.log"),
	)
	if err == nil || !strings.HasPrefix(err.Error(), "starting etcd: ") {
		t.Errorf("starting a binary that is not there: %v", err)
	}
}

func TestChoosePorts_RefusesTakenPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	_, err = cluster.ChoosePorts(port)
	want := fmt.Sprintf("--port %d: the port cannot be used: ", port)
	if !badinput.Is(err) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a taken port: %v", err)
	}
	if _, err := cluster.ChoosePorts(0); err != nil {
		t.Errorf("free ports: %v", err)
	}
}

// A port that is held and that no component asks back would stay taken for the component that was to have it.
func TestPlannedPorts_EachHasItsListener(t *testing.T) {
	held, listened, err := cluster.PlannedPorts()
	if err != nil {
		t.Fatal(err)
	}
	if len(held) == 0 || !slices.Equal(held, listened) {
		t.Errorf("held are %v, and components listen on %v", held, listened)
	}
}

func TestStamp_NamesThePinnedRelease(t *testing.T) {
	module, err := os.ReadFile(filepath.Join("..", "..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(module), "\tk8s.io/kubernetes "+cluster.KubernetesVersion+"\n") {
		t.Errorf("go.mod does not pin k8s.io/kubernetes %s", cluster.KubernetesVersion)
	}
	for _, flag := range []string{"gitVersion=" + cluster.KubernetesVersion, "gitMajor=1", "gitMinor=37"} {
		if !strings.Contains(cluster.Stamp(cluster.KubernetesVersion), flag) {
			t.Errorf("the linker flags lack %s", flag)
		}
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "KUBERNETES_VERSION := "+cluster.KubernetesVersion+"\n") {
		t.Errorf("the Makefile stamps another release than %s", cluster.KubernetesVersion)
	}
}
