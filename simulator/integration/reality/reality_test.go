package reality_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/engine/kube"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

// engines are both, as lockstep simulate plays the product.
func engines(t *testing.T) map[string]engine.Engine {
	t.Helper()
	stepped, err := kube.New(kube.Options{Profile: kube.Lockstep, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]engine.Engine{
		"direct": direct.NewEngine(direct.Options{Preempt: true}, time.Now),
		"kube":   stepped,
	}
}

// The simulator agrees with real components about a workload: the place of each gang, the order of their starts, and
// their waits. One seed of each scenario, or five with -long.
func TestSimulator_AgreesWithRealComponents(t *testing.T) {
	if *replay || *recorded != "" {
		t.Skip("with -uncontrolled the fleet is another one, with -recorded there is none")
	}
	seeds := []uint64{1}
	if *long {
		seeds = []uint64{1, 2, 3, 4, 5}
	}
	players := engines(t)
	seen := make(map[string][]rerun.Comparison)
	for _, kind := range rerun.Kinds() {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", kind, seed), func(t *testing.T) {
				if !*long && kind == rerun.Burst {
					t.Skip("with -long: it takes longer than the others, and wants a machine of its own")
				}
				record, compared := measure(t, rerun.Draw(kind, seed), players)
				keepRecord(t, *keep, record)
				for name, c := range compared {
					seen[name] = append(seen[name], c)
					if len(rerun.Enough([]rerun.Comparison{c})) > 0 { // which -recorded plays again
						keepRecord(t, filepath.Join(shared.Dir(), "logs"), record)
					}
				}
			})
		}
	}
	for name, all := range seen {
		for _, missing := range rerun.Enough(all) {
			t.Errorf("engine %s: %s", name, missing)
		}
	}
	if *write != "" {
		writeTables(t, seen)
	}
}

// tries limits the drives of a plan.
const tries = 3

// measure carries a plan out and compares the record with each engine. Without -long it does so again if an engine
// disagrees with the record of a starved machine.
func measure(
	t *testing.T, plan rerun.Plan, players map[string]engine.Engine,
) (rerun.Record, map[string]rerun.Comparison) {
	t.Helper()
	for try := 1; ; try++ {
		record := drive(t, plan, try)
		compared := make(map[string]rerun.Comparison)
		again := false
		for name, player := range players {
			c := compare(t, name, player, shared.Machines, record)
			compared[name] = c
			again = again || len(rerun.Enough([]rerun.Comparison{c})) > 0 && starved(c)
		}
		if !again || *long || try == tries {
			return record, compared
		}
		t.Logf("%s, seed %d: once more, because a gang with room was not bound within %s", plan.Kind, plan.Seed, enough)
	}
}

// starved reports whether a gang with room was bound so late that the driver took it for one without: then the input of
// the run is not that of its record.
func starved(c rerun.Comparison) bool { return c.Binding.Max > enough }

// Records of earlier runs are held against the simulator again, without a cluster: those of a run that disagreed are
// beside its logs.
func TestSimulator_AgreesWithRecords(t *testing.T) {
	if *recorded == "" {
		t.Skip("with -recorded: the folder that -keep named, or the logs of a run that disagreed")
	}
	machines, err := fleet.Open(fleetFile)
	if err != nil {
		t.Fatal(err)
	}
	files := recordsIn(t, *recorded)
	if len(files) == 0 {
		t.Fatalf("-recorded %s: there are no records; write some with -keep", *recorded)
	}
	for _, file := range files {
		var record rerun.Record
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &record)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, player := range engines(t) {
			c := compare(t, name, player, machines, record)
			for _, missing := range rerun.Enough([]rerun.Comparison{c}) {
				t.Errorf("engine %s: %s", name, missing)
			}
		}
	}
}

// recordsIn lists the records of all kinds in a folder.
func recordsIn(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	for _, kind := range rerun.Kinds() {
		files, err := filepath.Glob(filepath.Join(folder, string(kind)+"-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files...)
	}
	return all
}

func compare(
	t *testing.T, name string, player engine.Engine, machines fleet.Fleet, record rerun.Record,
) rerun.Comparison {
	t.Helper()
	out, err := rerun.Play(t.Context(), player, machines, record)
	if err != nil {
		t.Fatal(err)
	}
	c := rerun.Compare(out)
	one := []rerun.Comparison{c}
	t.Logf("engine %s\n%s\n%s\n%s", name, rerun.Table(one), rerun.Latencies(one), rerun.Notes(one))
	return c
}

// keepRecord writes a record to a folder; empty for none.
func keepRecord(t *testing.T, folder string, record rerun.Record) {
	t.Helper()
	if folder == "" {
		return
	}
	content, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, fmt.Sprintf("%s-%d.json", record.Plan.Kind, record.Plan.Seed))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The marks around the part of a page that this test writes.
const opening, closing = "<!-- written by the test: begin -->\n", "<!-- written by the test: end -->"

// writeTables replaces the part of a page that this test writes.
func writeTables(t *testing.T, seen map[string][]rerun.Comparison) {
	t.Helper()
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Commit %s; %d CPUs, %s/%s, %s.\n\n",
		strings.TrimSpace(string(commit)), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&text, "### What components took\n\n%s\n", rerun.Latencies(seen["direct"]))
	for _, name := range []string{"direct", "kube"} {
		fmt.Fprintf(&text, "### Engine %s\n\n%s\n%s\n", name, rerun.Table(seen[name]), rerun.Notes(seen[name]))
	}
	rewrite(t, opening, closing, text.String())
}

// rewrite replaces the text between two marks on the page of -write.
func rewrite(t *testing.T, opening, closing, text string) {
	t.Helper()
	page, err := os.ReadFile(*write)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), opening)
	_, after, ends := strings.Cut(rest, closing)
	if !begins || !ends {
		t.Fatalf("%s does not say where the tables belong: there is no %s", *write, strings.TrimSpace(opening))
	}
	if err := os.WriteFile(*write, []byte(before+opening+text+closing+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
