package dra_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/dra"
)

// sample reads the slices of a machine as its drivers publish them.
func sample(tb testing.TB, file string) []*resourcev1.ResourceSlice {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		tb.Fatal(err)
	}
	var all []*resourcev1.ResourceSlice
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		s := new(resourcev1.ResourceSlice)
		if err := yaml.UnmarshalStrict(document, s); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		all = append(all, s)
	}
	return all
}

// rename makes the slices those of another machine of the same model: other names, other UUIDs.
func rename(all []*resourcev1.ResourceSlice, node string) []*resourcev1.ResourceSlice {
	renamed := make([]*resourcev1.ResourceSlice, 0, len(all))
	for _, s := range all {
		s = s.DeepCopy()
		s.Name = strings.Replace(s.Name, *s.Spec.NodeName, node, 1)
		s.Spec.NodeName, s.Spec.Pool.Name = &node, node
		for _, d := range s.Spec.Devices {
			if uuid, found := d.Attributes["uuid"]; found {
				d.Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: new(*uuid.StringValue + node)}
			}
		}
		renamed = append(renamed, s)
	}
	return renamed
}

// partitioned is the MIG sample with so many GPUs: the sample's first, again and again.
func partitioned(tb testing.TB, gpus int) []*resourcev1.ResourceSlice {
	tb.Helper()
	all := sample(tb, "h100-mig-node.yaml")
	counters, devices := all[0], all[1]
	isFirst := func(name string) bool { return name == "gpu-0" || strings.HasPrefix(name, "gpu-0-") }
	set := counters.Spec.SharedCounters[0]
	first := slices.DeleteFunc(
		slices.Clone(devices.Spec.Devices),
		func(d resourcev1.Device) bool { return !isFirst(d.Name) },
	)
	counters.Spec.SharedCounters = nil
	made := []*resourcev1.ResourceSlice{counters}
	for g := range gpus {
		again := func(name string) string { return strings.Replace(name, "gpu-0", fmt.Sprint("gpu-", g), 1) }
		counters.Spec.SharedCounters = append(counters.Spec.SharedCounters,
			resourcev1.CounterSet{Name: again(set.Name), Counters: set.Counters})
		slice := devices.DeepCopy()
		slice.Name, slice.Spec.Devices = fmt.Sprintf("mig-000-gpu-%d", g), nil
		for _, d := range first {
			d = *d.DeepCopy()
			d.Name = again(d.Name)
			for i := range d.ConsumesCounters {
				d.ConsumesCounters[i].CounterSet = again(d.ConsumesCounters[i].CounterSet)
			}
			slice.Spec.Devices = append(slice.Spec.Devices, d)
		}
		made = append(made, slice)
	}
	for _, s := range made {
		s.Spec.Pool.ResourceSliceCount = int64(len(made))
	}
	return made
}

// standard are the classes that drivers install.
func standard() []*resourcev1.DeviceClass {
	gpu := deviceClass(
		"gpu.nvidia.com",
		`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`,
	)
	gpu.Spec.ExtendedResourceName = new("nvidia.com/gpu")
	return []*resourcev1.DeviceClass{
		gpu,
		deviceClass(
			"mig.nvidia.com",
			`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"`,
		),
		deviceClass("dranet.net", `device.driver == "dra.net"`),
		deviceClass("tpu.google.com", `device.driver == "tpu.google.com"`),
		deviceClass("compute-domain-default-channel.nvidia.com", `device.driver == "compute-domain.nvidia.com" && `+
			`device.attributes["compute-domain.nvidia.com"].type == "channel" && device.attributes["compute-domain.nvidia.com"].id == 0`),
		deviceClass("fabric.example.com", `device.driver == "fabric.example.com"`),
	}
}

func lookup(name string) *resourcev1.DeviceClass {
	for _, c := range standard() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func node(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key] = value
	}
	return n
}

// claim reads requests written as "name count class selector…", fields apart by "|", and constraints written as
// "match attribute: requests" or "distinct attribute: requests".
func claim(name string, lines ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: types.UID(name)}}
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		if kind == "match" || kind == "distinct" {
			attribute, requests, _ := strings.Cut(rest, ": ")
			constraint := resourcev1.DeviceConstraint{Requests: strings.Fields(requests)}
			if kind == "match" {
				constraint.MatchAttribute = new(resourcev1.FullyQualifiedName(attribute))
			} else {
				constraint.DistinctAttribute = new(resourcev1.FullyQualifiedName(attribute))
			}
			c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, constraint)
			continue
		}
		fields := strings.Split(line, "|")
		words := strings.Fields(fields[0])
		e := &resourcev1.ExactDeviceRequest{
			DeviceClassName: words[2],
			AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
		}
		if words[1] == "all" {
			e.AllocationMode = resourcev1.DeviceAllocationModeAll
		} else if _, err := fmt.Sscan(words[1], &e.Count); err != nil {
			panic(err)
		}
		e.Selectors = selectors(fields[1:]...)
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: words[0], Exactly: e})
	}
	return c
}

// pairs asks for GPUs, each with a network card that has the same value of the attribute.
func pairs(n int, attribute string) *resourcev1.ResourceClaim {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("gpu-%d 1 gpu.nvidia.com", i), fmt.Sprintf("nic-%d 1 dranet.net", i),
			fmt.Sprintf("match %s: gpu-%d nic-%d", attribute, i, i))
	}
	return claim("pairs", lines...)
}

// holder is a claim that has these devices, given as driver/pool/device.
func holder(name string, devices ...string) *resourcev1.ResourceClaim {
	c := claim(name)
	c.Status.Allocation = new(resourcev1.AllocationResult)
	for _, d := range devices {
		words := strings.Split(d, "/")
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: words[0], Pool: words[1], Device: words[2]})
	}
	return c
}

// TestSamples fits claims on current machine types. The allocator confirms the fits; refusals are not compared, because
// they would take it seconds (see the benchmarks).
func TestSamples(t *testing.T) {
	const (
		pcie   = "resource.kubernetes.io/pcieRoot"
		ofNUMA = `device.attributes["resource.kubernetes.io"].numaNode == %d`
		cards  = `device.attributes["dra.net"].numaNode == %d`
	)
	h100, gb200, efa := sample(t, "h100-node.yaml"), sample(t, "gb200-tray.yaml"), sample(t, "p5-efa-node.yaml")
	slice := func(profile string) string {
		return `|device.attributes["gpu.nvidia.com"].profile == "` + profile + `"`
	}
	each := func(n int, class string) []string {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf("r%d 1 %s", i, class)
		}
		return lines
	}
	for _, c := range []struct {
		name   string
		slices []*resourcev1.ResourceSlice
		taken  []string
		claims []*resourcev1.ResourceClaim
		want   string
	}{
		{
			"H100, all 8 pairs", h100, nil,
			[]*resourcev1.ResourceClaim{pairs(8, pcie)},
			"1: request gpu-0 needs 1 device of class gpu.nvidia.com: 8 devices, 0 free",
		},
		{
			"H100, 8 pairs with a network card taken", h100,
			[]string{"dra.net/h100-000/pci-0000-0c-00-0"},
			[]*resourcev1.ResourceClaim{pairs(8, pcie)},
			"0: 8 groups like gpu-0+nic-0, each aligned on resource.kubernetes.io/pcieRoot, are needed: 7 can be had",
		},
		{
			"H100, 3 pairs of which 7 are free", h100,
			[]string{"dra.net/h100-000/pci-0000-0c-00-0"},
			[]*resourcev1.ResourceClaim{pairs(3, pcie)},
			"2: 3 groups like gpu-0+nic-0, each aligned on resource.kubernetes.io/pcieRoot, are needed: 1 can be had",
		},
		{
			"H100, 8 GPUs with one taken", h100,
			[]string{"gpu.nvidia.com/h100-000/gpu-3"},
			[]*resourcev1.ResourceClaim{claim("c", "gpu 8 gpu.nvidia.com")},
			"0: request gpu needs 8 devices of class gpu.nvidia.com: 8 devices, 7 free",
		},
		{
			"H100, 8 requests for a GPU with one taken", h100,
			[]string{"gpu.nvidia.com/h100-000/gpu-3"},
			[]*resourcev1.ResourceClaim{claim("c", each(8, "gpu.nvidia.com")...)},
			"0: the requests need 8 devices at once: 7 can be had",
		},
		{
			"H100, 4 GPUs of one NUMA node", h100,
			[]string{"gpu.nvidia.com/h100-000/gpu-0"},
			[]*resourcev1.ResourceClaim{claim("c", "gpu 4 gpu.nvidia.com", "match resource.kubernetes.io/numaNode: gpu")},
			"1: request gpu needs 4 devices of class gpu.nvidia.com: 8 devices, 3 free",
		},
		{
			"GB200, a pair by PCIe root", gb200, nil,
			[]*resourcev1.ResourceClaim{pairs(1, pcie)},
			"0: no value of resource.kubernetes.io/pcieRoot has free devices for gpu-0+nic-0",
		},
		{
			"GB200, GPUs and cards by NUMA node, which the drivers name differently", gb200, nil,
			[]*resourcev1.ResourceClaim{claim("c",
				"g0 2 gpu.nvidia.com|"+fmt.Sprintf(ofNUMA, 0), "n0 2 dranet.net|"+fmt.Sprintf(cards, 0),
				"g1 2 gpu.nvidia.com|"+fmt.Sprintf(ofNUMA, 1), "n1 2 dranet.net|"+fmt.Sprintf(cards, 1))},
			"1: request g0 needs 2 devices of class gpu.nvidia.com: 2 devices, 0 free",
		},
		{
			"GB200, one side of the tray for each pod", gb200, nil,
			[]*resourcev1.ResourceClaim{claim("c", "gpu 2 gpu.nvidia.com", "match resource.kubernetes.io/numaNode: gpu")},
			"2: request gpu needs 2 devices of class gpu.nvidia.com: 4 devices, 0 free",
		},
		{
			"GB200, the channel beside the GPUs", gb200, nil,
			[]*resourcev1.ResourceClaim{
				claim("c", "gpu 2 gpu.nvidia.com"), claim("d", "channel 1 compute-domain-default-channel.nvidia.com"),
			},
			"1: request channel needs 1 device of class compute-domain-default-channel.nvidia.com: 1 device, 0 free",
		},
		{
			"MIG, 24 slices on 8 GPUs", partitioned(t, 8), nil,
			[]*resourcev1.ResourceClaim{claim("c", "mig 24 mig.nvidia.com"+slice("2g.20gb"))},
			"1: request mig needs 24 devices of class mig.nvidia.com: 24 devices, 0 free",
		},
		{
			"MIG, 25 slices on 8 GPUs", partitioned(t, 8), nil,
			[]*resourcev1.ResourceClaim{claim("c", "mig 25 mig.nvidia.com"+slice("2g.20gb"))},
			"0: request mig needs 25 devices of class mig.nvidia.com: 24 devices, 24 free",
		},
		{
			"MIG, any slices, more than the processors allow", partitioned(t, 4), nil,
			[]*resourcev1.ResourceClaim{claim("c", each(30, "mig.nvidia.com|"+
				`device.attributes["gpu.nvidia.com"].profile != "1g.10gb"`)...)},
			"0: the requests need 30 devices at once: 16 can be had",
		},
		{
			"MIG, a whole GPU and what is left", partitioned(t, 1), nil,
			[]*resourcev1.ResourceClaim{claim("c", "whole 1 gpu.nvidia.com", "mig 1 mig.nvidia.com")},
			"0: the requests draw at least 91543Mi from counters memory: 81559Mi is left",
		},
		{
			"EFA, 8 GPUs with 4 cards each", efa, nil,
			[]*resourcev1.ResourceClaim{claim("c",
				"gpu 1 gpu.nvidia.com", "efa 4 dranet.net", "match resource.kubernetes.io/pcieRoot: gpu efa")},
			"8: request gpu needs 1 device of class gpu.nvidia.com: 8 devices, 0 free",
		},
		{
			"TPU, all chips", sample(t, "tpu-v5p-node.yaml"), nil,
			[]*resourcev1.ResourceClaim{claim("c", "tpu all tpu.google.com")},
			"1: request tpu needs 4 devices of class tpu.google.com: 4 devices, 0 free",
		},
		{
			"TPU, all chips with one taken", sample(t, "tpu-v5p-node.yaml"),
			[]string{"tpu.google.com/tpu-000/2"},
			[]*resourcev1.ResourceClaim{claim("c", "tpu all tpu.google.com")},
			"0: request tpu needs 4 devices of class tpu.google.com: 4 devices, 3 free",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := *c.slices[0].Spec.NodeName
			s := &scene{nodes: []*corev1.Node{node(name)}, slices: c.slices, classes: standard(), claims: c.claims}
			if len(c.taken) > 0 {
				s.taken = []*resourcev1.ResourceClaim{holder("before", c.taken...)}
			}
			f := dra.NewFitter(dra.DefaultFeatures(), 0)
			fit, err := f.Fit(t.Context(), s.fleet(), name, f.Demand(lookup, c.claims...))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%d: %s", fit.Pods, fit.Rule); got != c.want || fit.Unknown || fit.Wide {
				t.Errorf("got  %s %+v\nwant %s", got, fit, c.want)
			}
			compiled := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
			if pods := (native{s, compiled}).pods(t.Context(), t, s.nodes[0], fit.Pods); pods != fit.Pods {
				t.Errorf("the allocator gives devices to %d", pods)
			}
		})
	}
}
