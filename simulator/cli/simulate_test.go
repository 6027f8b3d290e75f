package cli_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// card plays a run and reads the one object that it prints.
func card(t *testing.T, wantCode int, args ...string) measure.Scorecard {
	t.Helper()
	code, out, stderr := execute(t, append([]string{"simulate", "--progress", "none", "-o", "json"}, args...)...)
	if code != wantCode || stderr != "" {
		t.Fatalf("exit %d, want %d: %s", code, wantCode, stderr)
	}
	var c measure.Scorecard
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return c
}

// NVIDIA's gangs fill 32 nodes nine times over, if they are taken in their order. Both engines do; the real scheduler
// gathers changes for 50 ms before it asks again.
func TestSimulate_PacksKnavigatorPerfectly(t *testing.T) {
	for engine, late := range map[string]float64{"direct": 0, "kube": 9 * 0.05} {
		c := card(t, 0, "--fleet=knavigator-32", "--trace=knavigator-53", "--engine="+engine)
		if c.Engine != engine || c.Scheduler != "lockstep" || c.Fleet != "knavigator-32" || c.Trace != "knavigator-53" {
			t.Errorf("the run is called %s on %s, %s on %s", c.Scheduler, c.Engine, c.Trace, c.Fleet)
		}
		if c.Gangs != (measure.Gangs{Submitted: 53, Placed: 53, Finished: 53}) || c.Pods.Placed != 288 {
			t.Errorf("%s: %+v and %d pods", engine, c.Gangs, c.Pods.Placed)
		}
		if c.Makespan < 270 || c.Makespan > 270+late+1e-6 || c.Utilization.BusyMean < 0.99 {
			t.Errorf("%s: all is done after %g s, with %g in use while somebody waited",
				engine, c.Makespan, c.Utilization.BusyMean)
		}
		if c.Violations != (measure.Violations{}) {
			t.Errorf("%s: broken rules: %+v", engine, c.Violations)
		}
	}
}

// The costs of time are recorded and printed, and nothing of them is there if nothing costs time.
func TestSimulate_Costs(t *testing.T) {
	args := []string{"--fleet=knavigator-32", "--trace=knavigator-53", "--scheduler=random"}
	if c := card(t, 0, args...); c.Costs != nil {
		t.Errorf("costs %+v", *c.Costs)
	}
	args = append(args, "--slowdown=2", "--startup=on", "--checkpoint=10s")
	c := card(t, 0, args...)
	want := cost.Settings{Network: cost.TaperedH100, Slowdown: 2000, Startup: 1000, Checkpoint: 10}
	if c.Costs == nil || c.Costs.Settings != want || c.Costs.MeanSlowdown <= 1 || c.Goodput.Mean >= c.Utilization.Mean {
		t.Errorf("costs %+v, goodput %v of %v", c.Costs, c.Goodput.Mean, c.Utilization.Mean)
	}
	_, out, _ := execute(t, append([]string{"simulate", "--progress=none"}, args...)...)
	for _, text := range []string{"goodput", "slowdown 2 (tapered-h100), startup on, a checkpoint every 10 s, failures off", "not useful"} {
		if !strings.Contains(out, text) {
			t.Errorf("there is no %q in\n%s", text, out)
		}
	}
}

// The names of the scorecard's fields are a contract with scripts.
func TestSimulate_ScorecardHasContractFields(t *testing.T) {
	_, out, _ := execute(t, "simulate", "--fleet=knavigator-32", "--trace=knavigator-53", "--progress=none", "-o=json")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for field, parts := range map[string]string{
		"scheduler": "", "engine": "", "fleet": "", "trace": "", "seed": "", "commit": "", "config_hash": "",
		"gangs": "submitted placed finished pending", "pods": "placed", "wait_seconds": "mean p50 p95 p99 max",
		"jct_seconds": "mean p50 p95", "makespan_seconds": "", "bounded_slowdown": "mean p95",
		"quality":       "mean_q p05_q mean_gap p95_gap split_domains rank_inversions",
		"utilisation":   "mean busy_mean peak", //nolint:misspell // recorded results have this key
		"goodput":       "mean gpu_hours",
		"fragmentation": "mean end", "largest_placeable": "mean min",
		"preemption": "gangs gpu_hours", "violations": "partial_gangs required_level nvlink dra double_booking",
		"decision_ms": "p50 p99 max", "throughput": "gangs_per_s pods_per_s wall_s",
	} {
		value, there := got[field]
		if !there {
			t.Errorf("there is no %s", field)
		}
		for part := range strings.FieldsSeq(parts) {
			if inner, ok := value.(map[string]any); !ok || inner[part] == nil {
				t.Errorf("there is no %s of %s", part, field)
			}
		}
	}
}

// A run twice is the same run: the same events, byte by byte, from either engine.
func TestSimulate_SameSeedGivesSameLog(t *testing.T) {
	for _, args := range [][]string{
		{"--fleet=h100-128", "--trace=fragment-then-gang", "--estimates=2", "--seed=7"},
		{"--fleet=knavigator-32", "--trace=knavigator-53", "--engine=kube"},
		{"--fleet=knavigator-32", "--trace=knavigator-53", "--scheduler=native-tas"},
		{"--fleet=knavigator-32", "--trace=knavigator-53", "--scheduler=random", "--seed=7"},
	} {
		var logs [2][]byte
		for i := range logs {
			dir := filepath.Join(t.TempDir(), "run")
			card(t, 0, append(args, "--out="+dir)...)
			var err error
			if logs[i], err = os.ReadFile(filepath.Join(dir, "events.jsonl.gz")); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"scorecard.json", "scene.json", "report.html"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		}
		if !bytes.Equal(logs[0], logs[1]) {
			t.Errorf("two runs of %q differ", args)
		}
	}
}

// Work that is left is exit code 1, and so is a rule that is broken.
func TestSimulate_FailsOnWorkLeftOrBrokenRule(t *testing.T) {
	write := func(job string) string {
		path := filepath.Join(t.TempDir(), "trace.jsonl")
		if err := os.WriteFile(path, []byte(job), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--trace=" + path
	}
	tooLarge := write(`{"job": {"id": "a", "duration": "1h", "pods": [{"count": 33, "gpus": 8}]}}`)
	if c := card(t, 1, "--fleet=knavigator-32", tooLarge); c.Gangs.Pending != 1 {
		t.Errorf("%d gangs are left, want 1", c.Gangs.Pending)
	}
	inARack := write(`{"job": {"id": "a", "duration": "1h", "pods": [{"count": 8, "gpus": 8}], "required": "tier-0"}}`)
	if c := card(t, 0, "--fleet=knavigator-32", inARack); c.Violations.RequiredLevel != 0 {
		t.Error("lockstep breaks a required level")
	}
	if c := card(t, 1, "--fleet=knavigator-32", inARack, "--scheduler=random"); c.Violations.RequiredLevel != 1 {
		t.Errorf("chance keeps a level that it does not know: %+v", c.Violations)
	}
}

// compared plays a comparison and reads its table.
func compared(t *testing.T, args ...string) compare.Table {
	t.Helper()
	code, out, stderr := execute(t, append([]string{"compare", "--progress", "none", "-o", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var table compare.Table
	if err := json.Unmarshal([]byte(out), &table); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return table
}

// A large gang under a stream of small ones: a scheduler without reservations lets it wait until the stream ends.
func TestCompare_ShowsStarvation(t *testing.T) {
	table := compared(t, "--fleet=h100-128", "--trace=starving-512", "--estimates=3",
		"--schedulers=lockstep,first-fit", "--seeds=1,2")
	for _, row := range table.Rows {
		if row.Name == "wait_seconds.max" {
			if row.Means[0] > 4*3600 || row.Means[1] < 10*3600 || row.Against[0].Agree != 2 {
				t.Errorf("the longest waits are %v s", row.Means)
			}
			return
		}
	}
	t.Error("nothing is said about the longest wait")
}

// The experiment of the FGD paper by the command that users would type: one of the lists, and three seeds of the ten.
func TestCompare_PlaysOpenb(t *testing.T) {
	const folder = "../inputs/trace/testdata/openb/"
	list := folder + "openb_pod_list_gpuspec33.csv.gz"
	table := compared(t, "--fleet=openb:"+folder+"openb_node_list_gpu_node.csv.gz", "--trace=openb:"+list,
		"--schedulers=random,dot-product,gpu-clustering,gpu-packing,best-fit,fgd", "--seeds=42,43,44")
	if table.Allocation == nil {
		t.Fatal("there is no table of allocations")
	}
	for _, policy := range table.Allocation.Policies {
		published := openb.Published(list)[policy.Name]
		if policy.Published == nil || policy.Published.Mean != published.Mean {
			t.Errorf("%s: what was published is not told", policy.Name)
		}
		for i, arrival := range table.Allocation.Arrivals {
			if got := policy.Allocated[i].Mean; arrival == 100 && math.Abs(got-published.Mean) > 1 {
				t.Errorf("%s allocates %.2f %%, published is %.2f", policy.Name, got, published.Mean)
			}
		}
	}
}

// With a directory, a comparison leaves a page, and results that can be compared again, though not with those of other
// inputs.
func TestCompare_ReadsEarlierResults(t *testing.T) {
	dir := t.TempDir()
	compared(t, "--fleet=knavigator-32", "--trace=knavigator-53", "--schedulers=lockstep,slurm-block",
		"--seeds=1", "--out="+dir)
	if _, err := os.Stat(filepath.Join(dir, "compare.html")); err != nil {
		t.Error(err)
	}
	again := compared(t, filepath.Join(dir, "lockstep-1"), filepath.Join(dir, "slurm-block-1"))
	if len(again.Schedulers) != 2 || again.Watermark != "" {
		t.Errorf("compared again: %v, watermark %q", again.Schedulers, again.Watermark)
	}
	kube := filepath.Join(dir, "kube")
	card(t, 0, "--fleet=knavigator-32", "--trace=knavigator-53", "--engine=kube", "--seed=1", "--out="+kube)
	engines := compared(t, filepath.Join(dir, "lockstep-1"), kube)
	if want := []string{"lockstep (direct)", "lockstep (kube)"}; !slices.Equal(engines.Schedulers, want) {
		t.Errorf("two engines are compared as %q", engines.Schedulers)
	}
	other := filepath.Join(dir, "other")
	card(t, 0, "--fleet=h100-64", "--trace=knavigator-53", "--scheduler=random", "--seed=1", "--out="+other)
	code, _, stderr := execute(t, "compare", filepath.Join(dir, "lockstep-1"), other)
	if code != 2 || !strings.Contains(stderr, "fleet") || !strings.Contains(stderr, "--force") {
		t.Errorf("runs on two fleets are compared: exit %d, %s", code, stderr)
	}
	if forced := compared(t, "--force", filepath.Join(dir, "lockstep-1"), other); forced.Watermark == "" {
		t.Error("a forced comparison has no watermark")
	}
}

func TestSimulate_RefusesUnplayableInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	impossible := write("impossible.jsonl", `{"trace": {"name": "x"}}`+"\n"+
		`{"job": {"id": "a", "duration": "0s", "pods": [{"count": 1}]}}`+"\n")
	noLevel := write("level.jsonl",
		`{"job": {"id": "a", "duration": "1h", "pods": [{"count": 1}], "required": "row"}}`+"\n")
	noNode := write("node.jsonl", `{"job": {"id": "a", "duration": "1h", "pods": [{"count": 1}]}}`+"\n"+
		`{"event": {"at": "1h", "kind": "fail", "nodes": ["nowhere"]}}`+"\n")
	write("foreign.txt", "years of work")
	small := []string{"--fleet=knavigator-32", "--trace=knavigator-53"}
	with := func(command string, more ...string) []string {
		return append(append([]string{command}, small...), more...)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no fleet":        {[]string{"simulate", "--trace=philly"}, []string{"--fleet", "--snapshot"}},
		"no trace":        {[]string{"simulate", "--fleet=c1"}, []string{"--trace"}},
		"unknown trace":   {[]string{"simulate", "--fleet=c1", "--trace=philo"}, []string{"philo", "philly"}},
		"impossible row":  {[]string{"simulate", "--fleet=c1", "--trace=" + impossible}, []string{"impossible.jsonl:2", "duration"}},
		"no such level":   {[]string{"simulate", "--fleet=c1", "--trace=" + noLevel}, []string{"row", "tier-0"}},
		"no such node":    {[]string{"simulate", "--fleet=c1", "--trace=" + noNode}, []string{"nowhere"}},
		"no such load":    {with("simulate", "--load=0"), []string{"--load 0"}},
		"no factor":       {with("simulate", "--slowdown=much"), []string{"--slowdown much", "off, on or a number"}},
		"no network":      {with("simulate", "--slowdown=on", "--network=token-ring"), []string{"--network token-ring", "roce-h100"}},
		"idle network":    {with("simulate", "--network=roce-h100"), []string{"--network roce-h100", "add --slowdown on"}},
		"no policy":       {with("simulate", "--on-disruption=pray"), []string{"--on-disruption pray", "restart or replace"}},
		"no controller":   {with("simulate", "--on-disruption=replace", "--engine=kube"), []string{"--on-disruption replace", "engine kube"}},
		"no checkpoint":   {with("compare", "--checkpoint=1500ms"), []string{"--checkpoint 1.5s", "whole seconds"}},
		"unknown":         {with("simulate", "--scheduler=lockstop"), []string{"lockstop", "lockstep"}},
		"unknown engine":  {with("simulate", "--engine=steam"), []string{"--engine steam", "direct or kube"}},
		"no plugin":       {with("simulate", "--engine=kube", "--scheduler=random"), []string{"random", "--engine"}},
		"native at large": {[]string{"simulate", "--fleet=c2", "--trace=philly", "--scheduler=native-tas"}, []string{"3072 nodes", "576"}},
		"foreign results": {with("simulate", "--out="+dir), []string{"foreign.txt"}},
		"half of openb":   {[]string{"simulate", "--fleet=openb:x.csv", "--trace=philly"}, []string{"openb"}},
		"no seed":         {with("compare", "--seeds=1,x"), []string{"--seeds 1,x"}},
		"a seed twice":    {with("compare", "--seeds=1,1"), []string{"1 is named twice"}},
		"twins":           {with("compare", "--schedulers=random,random"), []string{"random is named twice"}},
		"no results":      {[]string{"compare", filepath.Join(dir, "none")}, []string{"none", "lockstep simulate --out"}},
		"both":            {with("compare", dir), []string{"--fleet"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := execute(t, append(test.args, "--progress=none")...)
			if code != 2 || out != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d, stdout %q, stderr %q: want exit 2 and one line", code, out, stderr)
			}
			for _, part := range test.want {
				if !strings.Contains(stderr, part) {
					t.Errorf("%q is not in %s", part, stderr)
				}
			}
		})
	}
}
