package fleet_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

// TestFleets runs the scripts in testdata. Commands:
//
//	read [nodes=a,b]   reads the fleet below it; prints its nodes, or the whole of some, or the error
//	read devices       the same, with classes and slices
//	open fleet=NAME    the same for a built-in fleet
func TestFleets(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		t.Helper()
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var opened fleet.Fleet
			var err error
			switch d.Cmd {
			case "read":
				opened, err = fleet.Read("mine.yaml", []byte(d.Input))
			case "open":
				var name string
				d.ScanArgs(t, "fleet", &name)
				opened, err = fleet.Open(name)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			if err != nil {
				if !badinput.Is(err) {
					t.Errorf("%T is not bad input", err)
				}
				return err.Error() + "\n"
			}
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "nodes":
					return inFull(t, opened, arg.Vals)
				case "devices":
					return summary(opened) + devicesOf(opened)
				}
			}
			return summary(opened)
		})
	})
}

func inFull(t *testing.T, f fleet.Fleet, names []string) string {
	t.Helper()
	var b strings.Builder
	for _, node := range f.Nodes {
		if !slices.Contains(names, node.Name) {
			continue
		}
		text, err := yaml.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.String()
}

func summary(f fleet.Fleet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "fleet %s, %d nodes\n", f.Name, len(f.Nodes))
	for _, node := range f.Nodes {
		gpus := node.Status.Allocatable["nvidia.com/gpu"]
		fmt.Fprintf(&b, "%s gpu=%s", node.Name, gpus.String())
		for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
			if !strings.Contains(key, "kubernetes.io") && key != "type" {
				fmt.Fprintf(&b, " %s=%s", key, node.Labels[key])
			}
		}
		if node.Spec.Unschedulable {
			b.WriteString(" cordoned")
		}
		for _, taint := range node.Spec.Taints {
			b.WriteString(" taint:" + taint.ToString())
		}
		b.WriteString("\n")
	}
	return b.String()
}

func devicesOf(f fleet.Fleet) string {
	var b strings.Builder
	for _, class := range f.Classes {
		b.WriteString("class " + class.Name)
		if class.Spec.ExtendedResourceName != nil {
			b.WriteString(" as " + *class.Spec.ExtendedResourceName)
		}
		b.WriteString("\n")
	}
	for _, slice := range f.Slices {
		node := "all"
		if slice.Spec.NodeName != nil {
			node = *slice.Spec.NodeName
		}
		pool := slice.Spec.Pool
		fmt.Fprintf(&b, "slice %s of %s: %d devices, pool %s (%d/%d)",
			slice.Name, node, len(slice.Spec.Devices), pool.Name, pool.ResourceSliceCount, pool.Generation)
		var tainted []string
		for _, device := range slice.Spec.Devices {
			if len(device.Taints) > 0 {
				tainted = append(tainted, device.Name)
			}
		}
		if len(tainted) > 0 {
			b.WriteString(", tainted " + strings.Join(tainted, " "))
		}
		b.WriteString("\n")
		if slice.UID != "" || len(slice.OwnerReferences) > 0 {
			b.WriteString("  it has an owner or a UID of its old cluster\n")
		}
	}
	return b.String()
}

func TestOpen_DefaultIsOneRowOfNVL72(t *testing.T) {
	opened, err := fleet.Open(fleet.Default)
	if err != nil {
		t.Fatal(err)
	}
	if len(opened.Nodes) != 74 {
		t.Fatalf("got %d nodes, want 72 trays and two others", len(opened.Nodes))
	}
	cliques, racks, names := map[string]int{}, map[string]int{}, []string{}
	var total int64
	for _, node := range opened.Nodes {
		gpus := node.Status.Capacity["nvidia.com/gpu"]
		total += gpus.Value()
		names = append(names, node.Name)
		if node.Annotations[fleet.FakeAnnotation] != fleet.FakeValue {
			t.Errorf("%s is not fake", node.Name)
		}
		if clique, inRack := node.Labels["nvidia.com/gpu.clique"]; inRack {
			cliques[clique]++
			racks[node.Labels["accelerator.topograph.run/domain"]]++
		}
	}
	if total != 4*72+2 || len(cliques) != 4 || len(racks) != 4 {
		t.Errorf("%d GPUs, cliques %v, racks %v", total, cliques, racks)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.1$`)
	for clique, trays := range cliques {
		if trays != 18 || !uuid.MatchString(clique) {
			t.Errorf("clique %s has %d trays", clique, trays)
		}
	}
	if !slices.IsSorted(names) {
		t.Error("names do not sort into the order of the racks")
	}
}

func TestOpen_ReturnsIndependentCopies(t *testing.T) {
	first, err := fleet.Open(fleet.Default)
	if err != nil {
		t.Fatal(err)
	}
	first.Nodes[0].Labels["touched"] = "yes"
	first.Nodes[0].Status.Capacity[corev1.ResourceCPU] = first.Nodes[0].Status.Capacity[corev1.ResourceMemory]
	second, err := fleet.Open(fleet.Default)
	if err != nil {
		t.Fatal(err)
	}
	if _, touched := second.Nodes[0].Labels["touched"]; touched {
		t.Error("two fleets share a node's labels")
	}
	if cpu := second.Nodes[0].Status.Allocatable[corev1.ResourceCPU]; cpu.Value() != 144 {
		t.Errorf("two fleets share a node's capacity: %s CPUs", cpu.String())
	}
}

func TestOpen_ReadsFiles(t *testing.T) {
	source, err := fleet.Source(fleet.Default)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.yaml")
	if err := os.WriteFile(path, source, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := fleet.Open(path)
	if err != nil || opened.Name != fleet.Default || len(opened.Nodes) != 74 {
		t.Errorf("got %s with %d nodes, %v", opened.Name, len(opened.Nodes), err)
	}
}

func TestOpen_RefusesFoldersInOneLine(t *testing.T) {
	folder := t.TempDir()
	_, err := fleet.Open(folder)
	var bad *badinput.Error
	if !errors.As(err, &bad) || bad.Where != folder || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
