package devices_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet/devices"
)

// captured reads the slices of a machine as its drivers published them.
func captured(t *testing.T, file string) []resourcev1.ResourceSlice {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../../../dra/testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []resourcev1.ResourceSlice
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		var slice resourcev1.ResourceSlice
		if err := yaml.UnmarshalStrict(document, &slice); err != nil {
			t.Fatal(err)
		}
		all = append(all, slice)
	}
	return all
}

// machine is the machine of captured slices: its name, its place as in their ids, and its UUIDs.
func machine(captured []resourcev1.ResourceSlice) devices.Machine {
	uuids := map[string]string{}
	labels := map[string]string{}
	for _, slice := range captured {
		for _, device := range slice.Spec.Devices {
			if uuid, said := device.Attributes["uuid"]; said {
				uuids[device.Name] = strings.TrimPrefix(*uuid.StringValue, "GPU-")
			}
			if rack, said := device.Attributes["oke.dra.net/rackId"]; said {
				labels["accelerator.topograph.run/domain"] = *rack.StringValue
				labels["nvidia.com/gpu.clique"] = *device.Attributes["oke.dra.net/gpuMemoryFabricId"].StringValue
			}
		}
	}
	return devices.Machine{
		Name: *captured[0].Spec.NodeName, Labels: labels, UUID: func(device string) string { return uuids[device] },
	}
}

func slicesOf(t *testing.T, model string, m devices.Machine) []resourcev1.ResourceSlice {
	t.Helper()
	found, known := devices.Find(model)
	if !known {
		t.Fatalf("there is no model %s", model)
	}
	return found.Slices(m)
}

// Each model publishes the devices that were captured from a machine of its kind, value by value.
func TestModels_PublishWhatDriversDo(t *testing.T) {
	for model, file := range map[string]string{
		"h100-8": "h100-node.yaml", "gb200-tray": "gb200-tray.yaml", "p5-efa": "p5-efa-node.yaml",
		"tpu-v5p": "tpu-v5p-node.yaml",
	} {
		t.Run(model, func(t *testing.T) {
			want := captured(t, file)
			if diff := cmp.Diff(want, slicesOf(t, model, machine(want))); diff != "" {
				t.Errorf("(-captured +model)\n%s", diff)
			}
		})
	}
}

// The captured machine has two GPUs; the model's first two are the same, and the others differ in their place alone.
func TestModels_PartitionableGPUsAsCaptured(t *testing.T) {
	want := captured(t, "h100-mig-node.yaml")
	m := machine(want)
	got := slicesOf(t, "h100-mig", m)
	if len(got) != 4 {
		t.Fatalf("%d slices, want the counters and three of devices", len(got))
	}
	for i, slice := range got {
		if slice.Spec.Pool.ResourceSliceCount != 4 || slice.Spec.Pool.Name != m.Name || len(slice.Spec.Devices) > 64 {
			t.Errorf("slice %d: pool %+v, %d devices", i, slice.Spec.Pool, len(slice.Spec.Devices))
		}
	}
	wantDevices := want[1].Spec.Devices
	if diff := cmp.Diff(want[0].Spec.SharedCounters, got[0].Spec.SharedCounters[:2]); diff != "" {
		t.Errorf("counters (-captured +model)\n%s", diff)
	}
	var all []resourcev1.Device
	for _, slice := range got {
		all = append(all, slice.Spec.Devices...)
	}
	if diff := cmp.Diff(wantDevices, all[:len(wantDevices)]); diff != "" {
		t.Errorf("devices (-captured +model)\n%s", diff)
	}
	if len(all) != 4*len(wantDevices) {
		t.Errorf("%d devices, want those of eight GPUs", len(all))
	}
}

// Missing devices are not published, occupied ones are tainted, and the others are unchanged.
func TestMachine_MissingAndOccupiedDevices(t *testing.T) {
	m := machine(captured(t, "h100-node.yaml"))
	whole := slicesOf(t, "h100-8", m)
	m.Missing, m.Occupied = []string{"pci-0000-2a-00-0"}, []string{"gpu-7"}
	got := slicesOf(t, "h100-8", m)
	want := whole
	want[1].Spec.Devices = slices.DeleteFunc(want[1].Spec.Devices, func(d resourcev1.Device) bool {
		return d.Name == "pci-0000-2a-00-0"
	})
	want[0].Spec.Devices[7].Taints = []resourcev1.DeviceTaint{{
		Key: devices.OccupiedTaint, Effect: resourcev1.DeviceTaintEffectNoSchedule,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Every device of every model is in exactly the classes that its driver means it for.
func TestDeviceClasses_SelectTheirDevices(t *testing.T) {
	want := map[string]map[string]int{
		"gb200-tray": {
			"gpu.nvidia.com": 4, "dranet.net": 8, "compute-domain-default-channel.nvidia.com": 1,
			"compute-domain-daemon.nvidia.com": 1,
		},
		"h100-8":   {"gpu.nvidia.com": 8, "dranet.net": 8},
		"h100-mig": {"gpu.nvidia.com": 8, "mig.nvidia.com": 144},
		"p5-efa":   {"gpu.nvidia.com": 8, "dranet.net": 32},
		"tpu-v5p":  {"tpu.google.com": 4},
	}
	compiler := cel.GetCompiler(cel.Features{})
	for _, model := range devices.Models() {
		got := map[string]int{}
		for _, class := range devices.Classes(model.Drivers()) {
			compiled := compiler.CompileCELExpression(class.Spec.Selectors[0].CEL.Expression, cel.Options{})
			if compiled.Error != nil {
				t.Fatalf("class %s: %v", class.Name, compiled.Error)
			}
			for _, slice := range model.Slices(devices.Machine{Name: "a", UUID: func(d string) string { return d }}) {
				for _, device := range slice.Spec.Devices {
					matches, _, err := compiled.DeviceMatches(t.Context(), cel.Device{
						Driver: slice.Spec.Driver, Attributes: device.Attributes, Capacity: device.Capacity,
					})
					if err == nil && matches {
						got[class.Name]++
					}
				}
			}
		}
		if diff := cmp.Diff(want[model.Name], got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", model.Name, diff)
		}
	}
}
