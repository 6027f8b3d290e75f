package importer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

func open(t *testing.T, name string) fleet.Fleet {
	t.Helper()
	f, err := fleet.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// described is a fleet of one group.
func described(t *testing.T, group string) fleet.Fleet {
	t.Helper()
	f, err := fleet.Read("f.yaml", []byte(
		"apiVersion: simulator.lockstep.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {groups: ["+group+"]}\n",
	))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func made(t *testing.T, f fleet.Fleet, tr trace.Trace, o scenario.Options) *scenario.Scenario {
	t.Helper()
	s, err := importer.New(f, tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// objects are the API objects behind a scenario.
func objects(t *testing.T, s *scenario.Scenario) *importer.Objects {
	t.Helper()
	out, err := importer.ObjectsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// job is a job of equal pods that arrives at the beginning and runs for an hour.
func job(id string, pods, gpus int) trace.Job {
	return trace.Job{
		ID:       id,
		Duration: time.Hour,
		Podsets:  []trace.Podset{{Count: pods, GPUs: gpus, CPU: 1000, Memory: 1 << 30}},
	}
}

func jobs(of ...trace.Job) trace.Trace { return trace.Trace{Name: "t", Source: "us", Jobs: of} }

// Every built-in fleet makes a scene: its accelerators are counted, whether they are capacity or devices, its nodes
// stand at their number in the tree, and those are closed that take no pods.
func TestNew_EveryFleet(t *testing.T) {
	for name, want := range map[string]struct {
		nodes        int
		accelerators int64
		closed       int
		resource     string
		devices      bool
		levels       string
	}{
		"c1":            {512, 4096, 0, "nvidia.com/gpu", true, "tier-1 tier-0"},
		"c1-coreweave":  {512, 4096, 0, "nvidia.com/gpu", true, "fabric superpod leafgroup"},
		"c1x4":          {2048, 16384, 0, "nvidia.com/gpu", true, "tier-1 tier-0"},
		"c2":            {3072, 24576, 0, "nvidia.com/gpu", false, "spine leaf"},
		"c2x4":          {12288, 98304, 0, "nvidia.com/gpu", false, "core spine leaf"},
		"c3":            {576, 2304, 0, "nvidia.com/gpu", true, "tier-1 tier-0 rack clique"},
		"c3-worn":       {576, 2304, 67, "nvidia.com/gpu", true, "tier-1 tier-0 rack clique"},
		"c3x4":          {2304, 9216, 0, "nvidia.com/gpu", true, "tier-1 tier-0 rack clique"},
		"c4":            {688, 512*8 + 144*4 + 32*8, 0, "nvidia.com/gpu", true, "layer-1 layer-2 layer-3 layer-4 capacity-block clique"},
		"c5":            {576, 2304, 0, "google.com/tpu", false, "block tpu-4x4x4 tpu-2x4x4 tpu-2x2x4 tpu-2x2x2 tpu-2x2x1"},
		"c6":            {296, 128*8 + 72*4 + 32*8 - 13*(1+4+2), 15, "nvidia.com/gpu", true, "tier-1 tier-0 rack clique"},
		"gb200-72":      {74, 290, 0, "nvidia.com/gpu", false, "tier-1 tier-0 rack clique"},
		"h100-128":      {128, 1024, 0, "nvidia.com/gpu", false, "tier-1 tier-0"},
		"h100-64":       {64, 512, 0, "nvidia.com/gpu", false, "tier-1 tier-0"},
		"k8s-5000":      {5000, 200_000, 0, "nvidia.com/gpu", false, "tier-0"},
		"knavigator-32": {32, 256, 0, "nvidia.com/gpu", false, "tier-1 tier-0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			s := made(t, f, jobs(), scenario.Options{})
			closed, devices := 0, false
			var levels []string
			nodes := objects(t, s).Nodes
			for i, node := range nodes {
				at, ok := s.Ledger.Tree.Index(node.Name)
				amount := node.Status.Allocatable[corev1.ResourceName(s.Resources[s.Accelerator])]
				if !ok || at != i || amount.Value() != s.Ledger.Total[i][s.Accelerator] ||
					!cmp.Equal(s.Ledger.Free[i], s.Ledger.Total[i]) {
					t.Fatalf(
						"node %d is %s, number %d: %v of %v free, %s",
						i,
						node.Name,
						at,
						s.Ledger.Free[i],
						s.Ledger.Total[i],
						&amount,
					)
				}
				if s.Closed[i] {
					closed++
				}
				devices = devices || s.Devices[i]
			}
			for _, l := range s.Ledger.Tree.Levels() {
				levels = append(levels, l.Name)
			}
			if len(nodes) != want.nodes || len(s.Closed) != want.nodes || closed != want.closed ||
				devices != want.devices ||
				s.Resources[s.Accelerator] != want.resource ||
				strings.Join(levels, " ") != want.levels ||
				s.Fleet != name {
				t.Errorf(
					"%d nodes, %d closed, %s, devices %t, %s; want %+v",
					len(nodes),
					closed,
					s.Resources,
					devices,
					levels,
					want,
				)
			}
			if got := s.GPUs(); got != want.accelerators {
				t.Errorf("%d accelerators, want %d", got, want.accelerators)
			}
		})
	}
	if len(fleet.Names()) != 16 {
		t.Errorf("of %d fleets 16 are looked at", len(fleet.Names()))
	}
}

// Of C6's 128 machines 39 are occupied by others: their devices are left out. Every other machine has all it was built
// with, and GPUs that are cut into parts are still whole ones.
func TestNew_OmitsOccupiedDevices(t *testing.T) {
	s := made(t, open(t, "c6"), jobs(), scenario.Options{})
	nodes := map[int64]int{}
	for _, total := range s.Ledger.Total {
		nodes[total[s.Accelerator]]++
	}
	if want := map[int64]int{0: 64, 4: 72 + 13, 6: 13, 7: 13, 8: 128 - 39 + 32}; !cmp.Equal(nodes, want) {
		t.Errorf("nodes by accelerators: %v, want %v", nodes, want)
	}
}

// A taint closes a node, unless it is about accelerators or asks only to be avoided.
func TestNew_TaintsCloseNodes(t *testing.T) {
	f := described(t, `{name: "n{i}", counters: [{name: i, count: 6}], capacity: {cpu: 8, nvidia.com/gpu: 8}}`)
	taint := func(i int, key string, effect corev1.TaintEffect) {
		f.Nodes[i].Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}}
	}
	taint(1, "nvidia.com/gpu", corev1.TaintEffectNoSchedule)
	taint(2, "team", corev1.TaintEffectNoSchedule)
	taint(3, "team", corev1.TaintEffectPreferNoSchedule)
	taint(4, "team", corev1.TaintEffectNoExecute)
	f.Nodes[5].Spec.Unschedulable = true
	s := made(t, f, jobs(job("a", 1, 1)), scenario.Options{})
	if want := []bool{false, false, true, false, true, true}; !cmp.Equal(s.Closed, want) {
		t.Errorf("closed: %v, want %v", s.Closed, want)
	}
	if s.Jobs[0].Gang.Shapes[0].Barred != nil {
		t.Error("a fleet's tainted nodes are closed, and nobody is barred")
	}
}

// The mark of maintenance closes the domain that it names.
func TestNew_MaintenanceClosesADomain(t *testing.T) {
	f := open(t, "knavigator-32")
	for i := range f.Nodes {
		switch f.Nodes[i].Name {
		case "rack-2-node-3":
			f.Nodes[i].Annotations[topology.KeyMaintenance] = "tier-0"
		case "rack-4-node-1":
			f.Nodes[i].Annotations[topology.KeyMaintenance] = ""
		}
	}
	s := made(t, f, jobs(), scenario.Options{})
	var closed []string
	for i := range s.Closed {
		if s.Closed[i] {
			closed = append(closed, strings.TrimPrefix(s.Ledger.Tree.Node(i), "rack-"))
		}
	}
	const want = "2-node-1 2-node-2 2-node-3 2-node-4 2-node-5 2-node-6 2-node-7 2-node-8 4-node-1"
	if got := strings.Join(closed, " "); got != want {
		t.Errorf("closed: %s\nwant    %s", got, want)
	}
}

// The accelerator is the resource that most nodes have, and the rest is noted.
func TestNew_AcceleratorOfMostNodes(t *testing.T) {
	const mixed = `{name: "t{i}", counters: [{name: i, count: 3}], capacity: {cpu: 8, google.com/tpu: 4}}, ` +
		`{name: g, capacity: {cpu: 8, nvidia.com/gpu: 8}}`
	s := made(t, described(t, mixed), jobs(), scenario.Options{})
	if s.Resources[s.Accelerator] != "google.com/tpu" || s.GPUs() != 12 || len(s.Notes) != 1 ||
		!strings.Contains(s.Notes[0], "what 1 nodes have of nvidia.com/gpu is not") {
		t.Errorf("%d of %s; %q", s.GPUs(), s.Resources, s.Notes)
	}
	_, err := importer.New(described(t, `{name: plain, capacity: {cpu: 8}}`), jobs(), scenario.Options{})
	if !badinput.Is(err) || !strings.Contains(err.Error(), "no accelerators") {
		t.Errorf("a fleet without any: %v", err)
	}
}
