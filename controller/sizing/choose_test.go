package sizing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller/sizing"
)

// nodes are so many of a product, each NVLink domain with so many of them; 0 for nodes with domains of their own.
func nodes(product string, count, devices, memoryGiB, together int64) []sizing.Node {
	var out []sizing.Node
	for i := range count {
		node := sizing.Node{
			Name: fmt.Sprintf(
				"%s-%03d",
				product,
				i,
			),
			Resource: "nvidia.com/gpu",
			Devices:  devices,
			Memory:   memoryGiB << 30,
			Product:  product,
			PinKey:   "product",
			PinValue: product,
			Labels:   map[string]string{"product": product},
		}
		if together > 0 {
			node.Domain = fmt.Sprintf("%s-domain-%d", product, i/together)
		}
		out = append(out, node)
	}
	return out
}

// work is one that needs so many GiB in all, spread evenly over its devices.
func work(gibs int64) sizing.Work {
	return sizing.Work{About: "a test", On: func(int64) sizing.Training {
		return sizing.Training{
			// With 4 bytes for a parameter and SGD, weights, momentum and gradients take 12 bytes.
			Model:       sizing.Model{Parameters: gibs << 30 / 12, Layers: 1, Hidden: 1, Vocabulary: 1},
			Method:      sizing.Full,
			Precision:   sizing.Float32,
			Optimizer:   sizing.SGD,
			Sharding:    sizing.ShardAll,
			Batch:       1,
			Sequence:    1,
			Activations: sizing.Retained,
		}
	}}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	h100, gb200, v100 := nodes("H100", 16, 8, 80, 0), nodes("GB200", 36, 4, 186, 18), nodes("V100", 2, 1, 16, 0)
	small := nodes("NVL40", 18, 4, 40, 18)
	unsized := nodes("B300", 4, 8, 0, 0)
	closed := nodes("H100", 2, 8, 80, 0)
	for i := range closed {
		closed[i].Unschedulable = true
	}
	for name, c := range map[string]struct {
		work   sizing.Work
		fleet  []sizing.Node
		want   string
		pin    string
		reason string
	}{
		"one device of the smallest that fits":   {work: work(12), fleet: slices.Concat(h100, v100), want: "1 x 1"},
		"larger than the smallest":               {work: work(60), fleet: slices.Concat(h100, v100), want: "1 x 1", pin: "H100"},
		"the devices of a node are divided":      {work: work(180), fleet: h100, want: "1 x 4"},
		"whole nodes":                            {work: work(64 * 17), fleet: h100, want: "3 x 8"},
		"one NVLink domain before fewer devices": {work: work(760), fleet: slices.Concat(h100, small), want: "6 x 4"},
		"several nodes of one NVLink domain":     {work: work(64 * 40), fleet: slices.Concat(h100, gb200), want: "5 x 4", pin: "GB200"},
		"more than an NVLink domain":             {work: work(148 * 80), fleet: gb200, want: "20 x 4"},
		"numNodes is fixed":                      {work: fixed(work(60), 2, 0), fleet: h100, want: "2 x 1"},
		"numProcPerNode is fixed":                {work: fixed(work(60), 0, 2), fleet: h100, want: "1 x 2"},
		"both are fixed, and too small":          {work: fixed(work(800), 2, 4), fleet: h100, reason: "even 2 nodes x 4"},
		"nothing is large enough":                {work: work(64 * 16 * 9), fleet: h100, reason: "even 16 nodes x 8 nvidia.com/gpu (H100, 80.0 GiB) are too few"},
		"memory unknown":                         {work: work(1), fleet: unsized, reason: "do not say how much memory"},
		"nodes of unknown memory are passed by":  {work: work(60), fleet: slices.Concat(unsized, h100), want: "1 x 1", pin: "H100"},
		"at least so many":                       {work: atLeast(work(1), 2), fleet: h100, want: "1 x 2"},
		"at least more than there are": {
			work: atLeast(work(1), 2), fleet: v100[:1], reason: "no node has 2 GPUs, the least for a test",
		},
		"no GPUs":  {work: work(1), reason: "no node of this cluster offers GPUs"},
		"cordoned": {work: work(1), fleet: closed, reason: "none of 2 nodes with GPUs is open"},
		"more processes on a node than it has devices": {work: fixed(work(1), 0, 16), fleet: h100, reason: "no node has 16 GPUs"},
		"more nodes than there are":                    {work: fixed(work(1), 200, 0), fleet: h100, reason: "too few for numNodes 200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, reason := sizing.Choose(c.work, sizing.Fleet{Nodes: c.fleet, Known: true})
			if shape := fmt.Sprintf(
				"%d x %d",
				got.Nodes,
				got.PerNode,
			); c.reason == "" &&
				(shape != c.want || got.PinValue != c.pin || reason != "") {
				t.Errorf(
					"it is %s on %q, %q (%s), want %s on %q",
					shape,
					got.PinValue,
					reason,
					got.Words,
					c.want,
					c.pin,
				)
			}
			if !strings.Contains(reason, c.reason) || c.reason != "" && got != (sizing.Choice{}) {
				t.Errorf("the reason is %q, want one with %q", reason, c.reason)
			}
		})
	}
}

func fixed(work sizing.Work, nodes, perNode int64) sizing.Work {
	work.Nodes, work.PerNode = nodes, perNode
	return work
}

func atLeast(work sizing.Work, devices int64) sizing.Work {
	work.LeastDevices, work.MostNodes = devices, 1
	return work
}

// The order in which nodes are listed changes nothing.
func TestChoose_OrderOfNodes(t *testing.T) {
	t.Parallel()
	all := slices.Concat(
		nodes("H100", 5, 8, 80, 0),
		nodes("GB200", 6, 4, 186, 3),
		nodes("V100", 2, 1, 16, 0),
		nodes("A100", 5, 8, 80, 0),
	)
	for gibs := int64(1); gibs < 2000; gibs += 37 {
		first, reason := sizing.Choose(work(gibs), sizing.Fleet{Nodes: all, Known: true})
		for range 5 {
			all = append(all[3:], all[:3]...)
			again, why := sizing.Choose(work(gibs), sizing.Fleet{Nodes: all, Known: true})
			if again != first || why != reason {
				t.Fatalf("%d GiB: once %+v %q, once %+v %q", gibs, first, reason, again, why)
			}
		}
	}
}

// The choice fits, and no choice of fewer devices on one node does.
func TestChoose_SmallestThatFits(t *testing.T) {
	t.Parallel()
	fleet := sizing.Fleet{Nodes: slices.Concat(nodes("H100", 4, 8, 80, 0), nodes("L40", 4, 4, 48, 0)), Known: true}
	for gibs := int64(1); gibs < 64*33; gibs += 5 {
		training := work(gibs).On(1)
		least := int64(0)
		for _, shape := range []struct{ devices, memory int64 }{{1, 48}, {1, 80}, {2, 48}, {2, 80}, {4, 48}, {4, 80}, {8, 80}} {
			if least == 0 && training.On(shape.devices).Bytes <= shape.memory<<30*8/10 {
				least = shape.devices
			}
		}
		got, reason := sizing.Choose(work(gibs), fleet)
		switch {
		case least > 0 && got.Nodes*got.PerNode != least:
			t.Errorf("%d GiB: %+v %s, want %d devices on a node", gibs, got, reason, least)
		case least == 0 && reason == "" && (got.Nodes < 2 || training.On(got.Nodes*got.PerNode).Bytes > 80<<30*8/10):
			t.Errorf("%d GiB: %+v does not fit", gibs, got)
		}
	}
}

// More devices never need more memory each, once sharded: otherwise the smallest number that fits would not be found by
// counting up.
func TestTraining_MoreDevicesNeedLess(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama3_2/1B", "llama3_2/3B", "qwen2_5/1.5B", "llama3_3/70B"} {
		for _, method := range []sizing.Method{sizing.Full, sizing.LoRA, sizing.QLoRA, sizing.DoRA} {
			training := torchtune(model(t, name), method, 2048)
			for devices := int64(2); devices < 64; devices++ {
				if few, more := training.On(devices).Bytes, training.On(devices+1).Bytes; more > few {
					t.Errorf(
						"%s %s: %d bytes on each of %d, and %d on each of %d",
						name,
						method,
						few,
						devices,
						more,
						devices+1,
					)
				}
			}
		}
	}
}

func TestProportioned(t *testing.T) {
	t.Parallel()
	for parameters, want := range map[int64]string{
		6_738_415_616: "32 x 4", 175_000_000_000: "96 x 12", 1_300_000_000: "19 x 2", 1: "1 x 1",
	} {
		got := sizing.Proportioned(parameters)
		if shape := fmt.Sprintf("%d x %d", got.Layers, max(1, got.Hidden/1000)); shape != want {
			t.Errorf("%d parameters: %d layers of %d, want %s thousand", parameters, got.Layers, got.Hidden, want)
		}
	}
}
