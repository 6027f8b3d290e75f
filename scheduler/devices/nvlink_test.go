package devices_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// A node has one channel, so members with channels are on nodes of their own, though there would be room for two on
// each.
func TestNVLink_OneChannelPerNode(t *testing.T) {
	t.Parallel()
	group, members, claims := nvlinkGang("train", 4)
	for _, m := range members {
		schedulertest.SetRequest(m, schedulertest.GPU, "2")
	}
	c := schedulertest.NewCluster(t, linked(schedulertest.Cliques(1, 6)), claims)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); len(slices.Compact(slices.Sorted(slices.Values(got)))) != 4 {
		t.Errorf("the gang is on %v", got)
	}
	more, others, theirs := nvlinkGang("more", 3)
	for _, m := range others {
		schedulertest.SetRequest(m, schedulertest.GPU, "2")
	}
	for _, claim := range theirs {
		if err := c.Tracker().Add(claim); err != nil {
			t.Fatal(err)
		}
	}
	c.Create(t, more, others)
	if why := c.WaitRejected(t, "more"); !strings.Contains(why, "2 of 3, 4 nodes full there") {
		t.Errorf("the second gang waits for: %s", why)
	}
}

// Gangs that fit a rack of 18 trays, and gangs that never will.
func TestNVLink_GangsOfOneRack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size   int
		spares string
		nodes  int // of the largest clique
		never  string
	}{
		"17 leave one":                {17, "", 18, ""},
		"18 fit":                      {18, "", 18, ""},
		"16 with two spares":          {16, "2", 18, ""},
		"18 with two spares":          {18, "2", 18, "2 more without 2 spares per "},
		"19 do not":                   {19, "", 18, "nearest fabric.0: 18 of 19"},
		"18 of a larger clique":       {18, "", 20, ""},
		"19 of a larger clique never": {19, "", 20, "1 more without the limit of 18 per "},
	} {
		t.Run(name, func(t *testing.T) {
			group, members, claims := nvlinkGang("train", test.size)
			if test.spares != "" {
				group.Annotations[topology.AnnotationSpares] = test.spares
			}
			c := schedulertest.NewCluster(t, linked(schedulertest.Cliques(1, test.nodes)), claims)
			c.Create(t, group, members)
			if test.never == "" {
				got := c.WaitBound(t, members)
				if slices.Sort(got); len(slices.Compact(got)) != test.size {
					t.Errorf("the gang is on %v", got)
				}
				return
			}
			why := c.WaitRejected(t, "train")
			if !strings.Contains(why, test.never) ||
				!strings.Contains(why, "it would not fit an empty cluster either") {
				t.Errorf("it waits for: %s; want %q", why, test.never)
			}
		})
	}
}

// A rack of 18 in two partitions: each is a clique. Another rack has a partition of the same number.
func TestNVLink_PartitionsOfARackAreCliques(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 18)
	for _, n := range nodes {
		var clique, tray int
		if _, err := fmt.Sscanf(n.Name, "c%d-n%d", &clique, &tray); err != nil {
			t.Fatal(err)
		}
		n.Labels[topology.LabelClique] = fmt.Sprintf("rack-%d.%d", clique, tray/9)
	}
	nine, members, claims := nvlinkGang("nine", 9)
	ten, others, theirs := nvlinkGang("ten", 10)
	c := schedulertest.NewCluster(t, linked(nodes), claims, theirs)
	c.Create(t, nine, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 9)) {
		t.Errorf("nine are on %v", got)
	}
	c.Create(t, ten, others)
	why := c.WaitRejected(t, "ten")
	if !strings.Contains(why, "9 of 10") || !strings.Contains(why, "it would not fit an empty cluster either") {
		t.Errorf("ten wait for: %s", why)
	}
}

// Fleets whose NVLink domains are named by others than NVIDIA's discovery only.
func TestNVLink_CliquesInOtherDialects(t *testing.T) {
	t.Parallel()
	for name, dialect := range map[string]func(n *corev1.Node, clique string){
		"topograph": func(n *corev1.Node, clique string) { n.Labels["accelerator.topograph.run/domain"] = "r" + clique },
		"topograph 0.3": func(n *corev1.Node, clique string) {
			n.Labels["network.topology.nvidia.com/accelerator"] = "r" + clique
		},
		"partitions": func(n *corev1.Node, clique string) {
			n.Labels["accelerator.topograph.run/domain"] = "r"
			n.Labels["accelerator.topograph.run/sub-domain"] = "p" + clique
		},
		"CoreWeave": func(n *corev1.Node, clique string) { n.Labels["ds.coreweave.com/nvlink.domain"] = clique },
		"Nebius":    func(n *corev1.Node, clique string) { n.Labels["topology.nebius.com/tier-0"] = "n" + clique },
		"OCI": func(n *corev1.Node, clique string) {
			n.Labels["oci.oraclecloud.com/host.gpu_memory_fabric_id"] = clique
		},
		"A4X": func(n *corev1.Node, clique string) {
			n.Labels["cloud.google.com/gce-topology-block"] = "b"
			n.Labels["cloud.google.com/gce-topology-subblock"] = clique
			n.Labels["nvidia.com/gpu.product"] = "NVIDIA-GB200"
		},
		"UltraServers": func(n *corev1.Node, clique string) { n.Labels["topology.k8s.aws/ultraserver-id"] = "us" + clique },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := schedulertest.Cliques(3, 4)
			for _, n := range nodes {
				clique := strings.TrimPrefix(n.Labels[topology.LabelClique], "fabric.")
				delete(n.Labels, topology.LabelClique)
				dialect(n, clique)
			}
			schedulertest.FindNode(nodes, "c0-n2").Spec.Unschedulable = true
			group, members, claims := nvlinkGang("train", 4)
			c := schedulertest.NewCluster(t, linked(nodes), claims)
			c.Create(t, group, members)
			if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
				t.Errorf("the gang is on %v", got)
			}
		})
	}
}

// A label that names no partition bars gangs with channels from its nodes, and their message says so; all others use
// them.
func TestNVLink_UnpartitionedCliqueBarsChannels(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(2, 4), topology.LabelClique, "rack-7", schedulertest.CliqueNodes(1, 4)...)
	five, members, claims := nvlinkGang("five", 4)
	schedulertest.FindNode(nodes, "c0-n0").Spec.Unschedulable = true
	plain, others := schedulertest.Gang("plain", 4, "clique")
	c := schedulertest.NewCluster(t, linked(nodes), claims)
	c.Create(t, five, members)
	why := c.WaitRejected(t, "five")
	if want := "4 nodes barred by clique label without partition (nvidia.com/gpu.clique=rack-7)"; !strings.Contains(
		why,
		want,
	) {
		t.Errorf("it waits for: %s; want %q", why, want)
	}
	c.Create(t, plain, others)
	if got := c.WaitBound(t, others); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("the other gang is on %v", got)
	}
	c.UpdateNode(t, "c0-n0", func(n *corev1.Node) { n.Spec.Unschedulable = false })
	c.WaitBound(t, members)
}
