package devices_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	channelDriver = "compute-domain.nvidia.com"
	channelClass  = "compute-domain-default-channel.nvidia.com"
	domainLabel   = "resource.nvidia.com/computeDomain"
)

// channel publishes the one channel of a node.
func channel(node *corev1.Node) runtime.Object {
	kind, id := "channel", int64(0)
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name + "-channel", ResourceVersion: "1", UID: types.UID("channel-" + node.Name),
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: channelDriver, NodeName: &node.Name,
			Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name: "channel-0",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"type": {StringValue: &kind}, "id": {IntValue: &id},
				},
			}},
		},
	}
}

// linked are the nodes with their channels, and the class of these.
func linked(nodes []*corev1.Node) []runtime.Object {
	objects := append(schedulertest.Objects(nodes...), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: channelClass, ResourceVersion: "1"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%[1]q].type == "channel" && `+
				`device.attributes[%[1]q].id == 0`, channelDriver),
		}}}},
	})
	for _, n := range nodes {
		objects = append(objects, channel(n))
	}
	return objects
}

// configured returns a claim's parameters for the driver of its channel.
func configured(parameters string) resourcev1.DeviceClaimConfiguration {
	return resourcev1.DeviceClaimConfiguration{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: channelDriver, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		},
	}}
}

// channelsOf gives each of the pods a claim for a channel of a ComputeDomain, and returns the claims.
func channelsOf(members []*corev1.Pod, domain string) []runtime.Object {
	var claims []runtime.Object
	for _, pod := range members {
		claims = append(claims, schedulertest.PodClaim(pod, "channel", resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "channel", Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: channelClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				}}},
				Config: []resourcev1.DeviceClaimConfiguration{configured(fmt.Sprintf(
					`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig","domainID":%q,"news":1}`,
					domain,
				))},
			},
		}))
	}
	return claims
}

// holdsChannels lets the pods hold the channels of the nodes on which they run.
func holdsChannels(members []*corev1.Pod, claims []runtime.Object) {
	for i, pod := range members {
		schedulertest.Allocate(pod, claims[i], &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "channel", Driver: channelDriver, Pool: pod.Spec.NodeName, Device: "channel-0"},
			}},
			NodeSelector: devicestest.OneNode(pod.Spec.NodeName),
		})
	}
}

// nvlinkGang is a gang in one clique whose members have channels of the ComputeDomain of its name.
func nvlinkGang(name string, size int) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := schedulertest.Gang(name, size, topology.LabelClique)
	return group, members, channelsOf(members, "domain-of-"+name)
}

// labels sets a label of nodes, or takes it away if the value is empty.
func labels(nodes []*corev1.Node, key, value string, names ...string) []*corev1.Node {
	for _, name := range names {
		setLabel(schedulertest.FindNode(nodes, name), key, value)
	}
	return nodes
}

func setLabel(n *corev1.Node, key, value string) {
	if n.Labels[key] = value; value == "" {
		delete(n.Labels, key)
	}
}

// A clique of four with two nodes that are still in a ComputeDomain without users. A gang of four waits until the last
// has left it, and its message names the reason; a gang without channels would not have to wait.
func TestComputeDomain_OccupiedNodeIsNotFree(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(1, 4), domainLabel, "gone", "c0-n1", "c0-n2")
	group, members, claims := nvlinkGang("train", 4)
	c := schedulertest.NewCluster(t, linked(nodes), claims)
	c.Create(t, group, members)
	why := c.WaitRejected(t, "train")
	for _, part := range []string{
		"nearest fabric.0: 2 of 4, 2 nodes full there", "2 nodes are still in other ComputeDomains", "a place is reserved for it",
	} {
		if !strings.Contains(why, part) {
			t.Errorf("it waits for: %s; want %q", why, part)
		}
	}
	c.UpdateNode(t, "c0-n1", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	time.Sleep(300 * time.Millisecond)
	c.ExpectUnbound(t, members)
	c.UpdateNode(t, "c0-n2", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}

// A gang that starts again finds its nodes in its own ComputeDomain, and need not wait; and one without channels does not care.
func TestComputeDomain_OwnDomainIsNoObstacle(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(2, 4), domainLabel, "domain-of-train", schedulertest.CliqueNodes(0, 4)...)
	labels(nodes, domainLabel, "other", schedulertest.CliqueNodes(1, 4)...)
	group, members, claims := nvlinkGang("train", 4)
	plain, others := schedulertest.Gang("plain", 4, "clique")
	c := schedulertest.NewCluster(t, linked(nodes), claims)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the gang is on %v", got)
	}
	c.Create(t, plain, others)
	c.WaitBound(t, others)
}

// A pod in no gang stays off the node too, until it has left the other ComputeDomain.
func TestComputeDomain_SinglePodWaitsForNode(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(1, 1), domainLabel, "gone", "c0-n0")
	single := schedulertest.Pod("single", "1")
	c := schedulertest.NewCluster(t, linked(nodes), channelsOf([]*corev1.Pod{single}, "its"))
	c.Create(t, single)
	time.Sleep(500 * time.Millisecond)
	c.ExpectUnbound(t, []*corev1.Pod{single})
	c.UpdateNode(t, "c0-n0", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	c.WaitBound(t, []*corev1.Pod{single})
}

// A node has one channel, so members with channels are on nodes of their own, though there would be room for two on each.
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

// Without a required clique a gang of 30 is on two cliques of 20, no more than 18 in each. A limit of its own at
// another level cannot be combined with that, and the gang's message says so.
func TestComputeDomain_ConnectsAtMost18Nodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"by itself":          {nil, "12 18"},
		"its own is tighter": {map[string]string{topology.AnnotationSpreadTopology: "clique", topology.AnnotationSpreadMax: "15"}, "15 15"},
		"its own is looser":  {map[string]string{topology.AnnotationSpreadTopology: "clique", topology.AnnotationSpreadMax: "20"}, "12 18"},
		"per node":           {map[string]string{topology.AnnotationSpreadTopology: "node", topology.AnnotationSpreadMax: "1"}, "12 18"},
		"segments": {map[string]string{
			topology.AnnotationSegmentTopology: "clique", topology.AnnotationSegmentSize: "5",
		}, "15 15"},
		"at another level": {map[string]string{
			topology.AnnotationSpreadTopology: "zone", topology.AnnotationSpreadMax: "20",
		}, "20 per zone cannot be kept together with that"},
		"segments too large": {map[string]string{
			topology.AnnotationSegmentTopology: "clique", topology.AnnotationSegmentSize: "19",
		}, "segments of 19 in one clique cannot be kept apart"},
	} {
		t.Run(name, func(t *testing.T) {
			group, members, claims := nvlinkGang("train", 30)
			delete(group.Annotations, topology.AnnotationRequiredTopology)
			for key, value := range test.annotations {
				metav1.SetMetaDataAnnotation(&group.ObjectMeta, key, value)
			}
			nodes := schedulertest.Cliques(2, 20)
			for _, n := range nodes {
				n.Labels[corev1.LabelTopologyZone] = "z"
			}
			c := schedulertest.NewCluster(t, linked(nodes), claims)
			c.Create(t, group, members)
			if strings.Contains(test.want, "cannot") {
				if why := c.WaitRejected(t, "train"); !strings.Contains(why, test.want) {
					t.Errorf("it waits for: %s; want %q", why, test.want)
				}
				return
			}
			if got := perClique(c.WaitBound(t, members)); got != test.want {
				t.Errorf("it has %s members per clique, want %s", got, test.want)
			}
		})
	}
}

// perClique returns the number of the nodes in each clique, ascending.
func perClique(nodes []string) string {
	counts := map[string]int{}
	for _, n := range nodes {
		clique, _, _ := strings.Cut(n, "-")
		counts[clique]++
	}
	var sizes []string
	for _, n := range counts {
		sizes = append(sizes, strconv.Itoa(n))
	}
	slices.Sort(sizes)
	return strings.Join(sizes, " ")
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

// A claim for a channel that does not name a ComputeDomain is reported in one line.
func TestComputeDomain_ChannelWithoutDomainIsExplained(t *testing.T) {
	t.Parallel()
	for name, config := range map[string][]resourcev1.DeviceClaimConfiguration{
		"no configuration": nil,
		"no domain":        {configured(`{"kind":"ComputeDomainChannelConfig"}`)},
		"not readable":     {configured(`{"kind":"ComputeDomainChannelConfig","domainID":7}`)},
		"another kind":     {configured(`{"kind":"ComputeDomainDaemonConfig","domainID":"x"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			group, members, claims := nvlinkGang("train", 2)
			claims[1].(*resourcev1.ResourceClaim).Spec.Devices.Config = config
			c := schedulertest.NewCluster(t, linked(schedulertest.Cliques(1, 4)), claims)
			c.Create(t, group, members)
			why := c.WaitRejected(t, "train")
			if !strings.Contains(why, "claim train-1-devices asks for a channel and names no ComputeDomain") {
				t.Errorf("it waits for: %s", why)
			}
		})
	}
}
