package devices_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

const pcieRoot, numaNode = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"

// completes waits until a job is complete.
func completes(t *testing.T, job string) {
	t.Helper()
	testcluster.Within(t, 30*time.Second, "the end of "+job, func() bool {
		found, err := shared.Dynamic.Resource(trainJobs).Namespace(metav1.NamespaceDefault).
			Get(t.Context(), job, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(fmt.Sprint(found.Object["status"]), "type:Complete")
	})
}

// The sample: eight pairs for each pod, with both devices below one PCIe root.
func TestAlignedPairs_H100BelowOneRoot(t *testing.T) {
	submit(t, sample(t, "h100-pairs", ""))
	for _, pod := range running(t, "h100-pairs", 2) {
		devices := claimed(t, &pod, "pairs")
		roots := map[string]bool{}
		for i := range 8 {
			gpu, nic := devices[fmt.Sprintf("gpu-%d", i)], devices[fmt.Sprintf("nic-%d", i)]
			if len(gpu) != 1 || len(nic) != 1 {
				t.Fatalf("pod %s: pair %d has %d GPUs and %d cards", pod.Name, i, len(gpu), len(nic))
			}
			root := *gpu[0].Attributes[pcieRoot].StringValue
			if other := *nic[0].Attributes[pcieRoot].StringValue; other != root {
				t.Errorf("pod %s: pair %d is below %s and %s", pod.Name, i, root, other)
			}
			roots[root] = true
		}
		if len(roots) != 8 {
			t.Errorf("pod %s: its pairs are below %d roots, want 8", pod.Name, len(roots))
		}
	}
	shared.Succeed(t, podsOf(t, "h100-pairs"))
	completes(t, "h100-pairs")
}

// Three machines have eight GPUs each, but one of them has lost a card: a gang of three waits, whole.
func TestAlignedPairs_UnalignableGangWaitsWhole(t *testing.T) {
	unplaced(t, sample(t, "h100-pairs", "numNodes: 3"), "h100-pairs", 3, "2 of 3")
}

// The sample: sixteen halves fill the eight GPUs of the machine. Sixteen more wait until these have ended.
func TestMIG_GangsFillGPUsExactly(t *testing.T) {
	submit(t, sample(t, "mig", ""))
	full := map[string]bool{}
	for _, pod := range running(t, "mig-halves", 16) {
		for _, device := range claimed(t, &pod, "half")["half"] {
			full[device.Name] = true
		}
	}
	for gpu := range 8 {
		for _, begin := range []int{0, 4} {
			if name := fmt.Sprintf("gpu-%d-mig-3g40gb-9-%d", gpu, begin); !full[name] {
				t.Errorf("%s is nobody's", name)
			}
		}
	}
	submit(t, written(t, template("quarter", `requests: [{name: part, exactly: {deviceClassName: mig.nvidia.com, `+
		`selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"}}]}}]`)+
		gang("more", 2, "quarter", "1s")))
	waiting(t, "more", "mig.nvidia.com")
	if running := podsOf(t, "mig-halves"); len(running) != 16 {
		t.Errorf("%d pods of the first gang are left", len(running))
	}
	shared.Succeed(t, podsOf(t, "mig-halves"))
	completes(t, "mig-halves")
	completes(t, "more")
}

// The sample: two GPUs and two cards of either processor, on trays of one clique that a ComputeDomain connects.
func TestAlignedPairs_GB200ByProcessor(t *testing.T) {
	submit(t, sample(t, "gb200-numa", ""))
	racks := map[string]bool{}
	for _, pod := range running(t, "gb200-numa", 4) {
		rack, _, _ := strings.Cut(pod.Spec.NodeName, "-tray-")
		racks[rack] = true
		devices := claimed(t, &pod, "sides")
		for side := range int64(2) {
			gpus, nics := devices[fmt.Sprintf("gpus-%d", side)], devices[fmt.Sprintf("nics-%d", side)]
			if len(gpus) != 2 || len(nics) != 2 {
				t.Fatalf("pod %s: side %d has %d GPUs and %d cards", pod.Name, side, len(gpus), len(nics))
			}
			for _, gpu := range gpus {
				if *gpu.Attributes[numaNode].IntValue != side {
					t.Errorf("pod %s: %s is not of processor %d", pod.Name, gpu.Name, side)
				}
			}
			for _, nic := range nics {
				if *nic.Attributes["dra.net/numaNode"].IntValue != side {
					t.Errorf("pod %s: %s is not of processor %d", pod.Name, nic.Name, side)
				}
			}
		}
		if len(pod.Spec.ResourceClaims) != 2 {
			t.Errorf("pod %s has claims %v, want one for a channel beside its own", pod.Name, pod.Spec.ResourceClaims)
		}
	}
	if len(racks) != 1 {
		t.Errorf("the gang is in racks %v", racks)
	}
	shared.Succeed(t, podsOf(t, "gb200-numa"))
	completes(t, "gb200-numa")
}

// On these trays no GPU shares a root with a card.
func TestAlignedPairs_ByRootWaitOnGB200(t *testing.T) {
	file := written(t, template("pair", `requests: [`+
		`{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, `+
		`selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA GB200'"}}]}}, `+
		`{name: nic, exactly: {deviceClassName: dranet.net}}], `+
		`constraints: [{requests: [gpu, nic], matchAttribute: `+pcieRoot+`}]`)+gang("paired", 2, "pair", "1s"))
	unplaced(t, file, "paired", 2, pcieRoot)
}

// Pods may ask for GPUs as ever: a class serves nvidia.com/gpu where drivers publish them.
func TestExtendedResource_GPUsByOldName(t *testing.T) {
	job := play(t, written(t, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: counted, annotations: {simulator.lockstep.dev/run-time: 1s}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}
`))["counted"]
	if job.Outcome != summary.Complete {
		t.Fatalf("%s (%s)", job.Outcome, job.Reason)
	}
	if job.Ranks[0].Node == job.Ranks[1].Node {
		t.Errorf("two members with eight GPUs each are on %s", job.Ranks[0].Node)
	}
}

// contradictory publishes two slices of a pool that disagree about the number of slices, until the test ends.
func contradictory(t *testing.T) {
	t.Helper()
	driver, node := "broken.example.com", "broken"
	api := shared.Client.ResourceV1()
	created := func(err error, remove func(context.Context, string, metav1.DeleteOptions) error, name string) {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := remove(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range int64(2) {
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("broken-%d", i)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: driver, NodeName: &node,
				Pool:    resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: i + 2},
				Devices: []resourcev1.Device{{Name: fmt.Sprintf("device-%d", i)}},
			},
		}
		_, err := api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
		created(err, api.ResourceSlices().Delete, slice.Name)
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: "device.driver == 'broken.example.com'",
		}}},
	}}
	_, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	created(err, api.DeviceClasses().Delete, class.Name)
}

// A claim that no device can serve leaves its gang waiting, with the reason, and no other gang. One gang at a time
// waits, because a second one may first report that another is before it, and an explanation is replaced once a minute.
func TestResourceClaim_BadOneBlocksItsGangOnly(t *testing.T) {
	contradictory(t)
	for _, bad := range []struct{ name, request, reason string }{
		{"classless", `deviceClassName: missing.example.com`, "missing.example.com"},
		{
			"faulty", `deviceClassName: gpu.nvidia.com, ` +
				`selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].hue == 'red'"}}]`, "hue",
		},
		{"torn", `deviceClassName: broken.example.com`, "slices"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			submit(t, written(t, template(bad.name, `requests: [{name: one, exactly: {`+bad.request+`}}]`)+
				gang(bad.name, 2, bad.name, "1s")))
			waiting(t, bad.name, bad.reason)
			healthy := play(t, written(t, template("one-gpu",
				`requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]`)+
				gang("healthy", 2, "one-gpu", "1s")))["healthy"]
			if healthy.Outcome != summary.Complete {
				t.Errorf("the healthy gang: %s (%s)", healthy.Outcome, healthy.Reason)
			}
			if pods := podsOf(t, bad.name); len(pods) != 2 || pods[0].Spec.NodeName+pods[1].Spec.NodeName != "" {
				t.Errorf("%d pods, want two without nodes", len(pods))
			}
		})
	}
}

// Slices are deleted with their node, and those of a node in a clique are published once.
func TestResourceSlice_BelongsToItsNode(t *testing.T) {
	all, err := shared.Client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	channels := map[string]int{}
	for _, slice := range all.Items {
		if slice.Spec.Driver == "compute-domain.nvidia.com" {
			channels[*slice.Spec.NodeName]++
		}
	}
	if len(channels) != 8 || channels["rack-1-tray-1"] != 1 {
		t.Errorf("slices with channels by node: %v, want one for each of eight trays", channels)
	}
	const slice = "leaving-tpu.google.com-0"
	if _, err := shared.Client.ResourceV1().ResourceSlices().Get(t.Context(), slice, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := shared.Client.CoreV1().Nodes().Delete(t.Context(), "leaving", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Within(t, 20*time.Second, "the end of the slice of a node that is gone", func() bool {
		_, err := shared.Client.ResourceV1().ResourceSlices().Get(t.Context(), slice, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
