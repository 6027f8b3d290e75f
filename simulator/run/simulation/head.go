package simulation

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
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// head returns the facts of a run that are known before it begins.
func (in *Input) head(scheduler, engine, tieRule string) (measure.Header, error) {
	hash, err := in.hash(scheduler, engine)
	return measure.Header{
		Scheduler: scheduler, Engine: engine, Commit: in.commit, ConfigHash: hash, TieRule: tieRule, Machine: machine(),
	}, err
}

// hash identifies a configuration: the scheduler and its profile, the fleet as it was read, the workload's name and
// options. The seed is not in it, nor are the effects of the code, which the commit identifies.
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

// commit returns the one from which this binary was built, with a plus sign if something was changed since; "unknown"
// if it was not noted.
func commit() string { return release.Current().Short() }

// machine describes the machine on which wall times were measured.
func machine() string {
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
