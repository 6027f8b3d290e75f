package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/release"
	"github.com/lockstep-project/lockstep/simulator/measure"
)

// head is what is known of a run before it begins.
func (in *Input) head(scheduler, engine, tieRule string) (measure.Header, error) {
	hash, err := in.hash(scheduler, engine)
	return measure.Header{
		Scheduler: scheduler, Engine: engine, Commit: in.commit, ConfigHash: hash, TieRule: tieRule, Machine: Machine(),
	}, err
}

// hash tells configurations apart: the scheduler and its profile, the fleet as it was read, the workload's name and how it is
// played. The seed is not in it, nor is what follows from the code, which the commit tells.
func (in *Input) hash(scheduler, engine string) (string, error) {
	inputs, err := json.Marshal(struct {
		Scheduler, Engine            string
		Names                        Names
		Options                      Options
		Fleet, Nodes, Pods, Snapshot any
		Profile                      []byte
	}{scheduler, engine, in.names, in.options, in.fleet, in.nodes, in.pods, in.snapshot, chart.Profile()})
	if err != nil {
		return "", fmt.Errorf("hashing the configuration: %w", err)
	}
	sum := sha256.Sum256(inputs)
	return hex.EncodeToString(sum[:8]), nil
}

// Commit is that from which this binary was built, with a plus sign if something was changed since; "unknown" if nobody noted it.
func Commit() string { return release.Current().Short() }

// Machine is what wall times were measured on.
func Machine() string {
	machine := fmt.Sprintf("%d CPUs, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return machine // another system
	}
	for line := range strings.Lines(string(info)) {
		if name, model, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return machine + ", " + strings.TrimSpace(model)
		}
	}
	return machine
}
