package fleet_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/controller/fleet"
)

func node(name string, labels map[string]string, resources ...string) *corev1.Node {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	out.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96")}
	for i := 0; i < len(resources); i += 2 {
		out.Status.Allocatable[corev1.ResourceName(resources[i])] = resource.MustParse(resources[i+1])
	}
	return out
}

func TestOf(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, c := range map[string]struct {
		labels    map[string]string
		resources []string
		devices   int64
		memory    int64
		pin       string
	}{
		"without GPUs": {},
		"feature discovery": {
			labels:    map[string]string{"nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
			resources: []string{"nvidia.com/gpu", "8"}, devices: 8, memory: 81559 << 20, pin: "nvidia.com/gpu.product",
		},
		"memory without a product": {
			labels:    map[string]string{"nvidia.com/gpu.memory": "16160"},
			resources: []string{"nvidia.com/gpu", "1"}, devices: 1, memory: 16160 << 20, pin: "nvidia.com/gpu.memory",
		},
		"the product's name has it": {
			labels:    map[string]string{"nvidia.com/gpu.product": "Tesla-V100-PCIE-16GB"},
			resources: []string{"nvidia.com/gpu", "1"}, devices: 1, memory: 16 * gib, pin: "nvidia.com/gpu.product",
		},
		"GKE": {
			labels:    map[string]string{"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
			resources: []string{"nvidia.com/gpu", "8"}, devices: 8, memory: 80 * gib, pin: "cloud.google.com/gke-accelerator",
		},
		"AMD": {
			labels:    map[string]string{"amd.com/gpu.vram": "192Gi", "amd.com/gpu.product-name": "AMD_Instinct_MI300X"},
			resources: []string{"amd.com/gpu", "8"}, devices: 8, memory: 192 * gib, pin: "amd.com/gpu.product-name",
		},
		"a product that says nothing": {
			labels:    map[string]string{"nvidia.com/gpu.product": "NVIDIA-GB200"},
			resources: []string{"nvidia.com/gpu", "4"}, devices: 4, pin: "nvidia.com/gpu.product",
		},
		"shared by time-slicing": {
			labels:    map[string]string{"nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.replicas": "4"},
			resources: []string{"nvidia.com/gpu", "32"}, devices: 32, pin: "nvidia.com/gpu.memory",
		},
		"all of them broken": {resources: []string{"nvidia.com/gpu", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, has := fleet.Of(node("a", c.labels, c.resources...))
			if has != (c.devices > 0) || got.Devices != c.devices || got.Memory != c.memory || got.PinKey != c.pin {
				t.Errorf("it offers %v: %+v", has, got)
			}
			if got.PinKey != "" && got.PinValue != c.labels[got.PinKey] {
				t.Errorf("pods would need %s=%s, which the node has not got", got.PinKey, got.PinValue)
			}
		})
	}
}

// informer hands a watch's handler to the test.
type informer struct {
	toolscache.ResourceEventHandlerRegistration

	handler toolscache.ResourceEventHandler
	synced  bool
}

func (i *informer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handler = handler
	return i, nil
}

func (i *informer) HasSynced() bool { return i.synced }

func TestWatch_FleetIsAValue(t *testing.T) {
	t.Parallel()
	var from informer
	watch, err := fleet.NewWatch(&from)
	if err != nil {
		t.Fatal(err)
	}
	if watch.Fleet().Known {
		t.Error("a fleet of which nothing was listed is known")
	}
	from.synced = true
	from.handler.OnAdd(node("b", nil, "nvidia.com/gpu", "8"), true)
	from.handler.OnAdd(node("a", nil, "nvidia.com/gpu", "4"), true)
	from.handler.OnAdd(node("cpus", nil), true)
	before := watch.Fleet()
	from.handler.OnUpdate(nil, node("b", nil, "nvidia.com/gpu", "7"))
	from.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a", Obj: node("a", nil, "nvidia.com/gpu", "4")})
	after := watch.Fleet()
	if len(before.Nodes) != 2 || before.Nodes[0].Name != "a" || before.Nodes[1].Devices != 8 || !before.Known {
		t.Errorf("before it is %+v", before)
	}
	if len(after.Nodes) != 1 || after.Nodes[0].Devices != 7 {
		t.Errorf("after it is %+v", after)
	}
	from.handler.OnUpdate(nil, node("b", nil))
	if rest := watch.Fleet().Nodes; len(rest) != 0 {
		t.Errorf("a node without GPUs is still there: %+v", rest)
	}
}
