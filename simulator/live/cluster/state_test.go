package cluster_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func TestOpenState_RefusesLiveDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, err := cluster.OpenState(dir)
	if err != nil {
		t.Fatalf("opening a new directory: %v", err)
	}
	_, err = cluster.OpenState(dir)
	want := dir + ": is the state directory of a running lockstep up (process " + strconv.Itoa(os.Getpid()) +
		"); use that cluster, stop it with Ctrl-C, or choose another --dir"
	if err == nil || err.Error() != want || !badinput.Is(err) {
		t.Errorf("second run on a live directory:\n got %v\nwant %v", err, want)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := cluster.OpenState(dir)
	if err != nil {
		t.Fatalf("opening the directory of a run that ended: %v", err)
	}
	_ = again.Release()
}

func TestOpenState_RemovesEarlierRunsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, err := cluster.OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, "logs", "kwok.log")
	if err := os.WriteFile(stale, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = first.Release()
	second, err := cluster.OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the earlier run's log is still there: %v", err)
	}
}

func TestOpenState_RetainsForeignFiles(t *testing.T) {
	dir := t.TempDir()
	thesis := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(thesis, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := cluster.OpenState(dir)
	if !badinput.Is(err) || !strings.Contains(err.Error(), "is not empty and is no state directory of lockstep") {
		t.Errorf("a directory with foreign files: %v", err)
	}
	if content, err := os.ReadFile(thesis); err != nil || string(content) != "years of work" {
		t.Errorf("the foreign file was touched: %q, %v", content, err)
	}
}
