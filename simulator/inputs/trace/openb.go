package trace

import (
	"io"
	"slices"
	"strings"
)

// GPU is one whole GPU in thousandths, the unit in which openb shares GPUs.
const GPU = 1000

// MostGPUs is the largest number of GPUs of a node, and of a pod's request.
const MostGPUs = 32

// NoTime is an instant that the trace does not have: the pod was never scheduled, or its list has no times.
const NoTime int64 = -1

// OpenbNode is a row of a list of nodes of Alibaba's openb trace.
type OpenbNode struct {
	Name string
	// CPU is in thousandths of a core, Memory in MiB.
	CPU, Memory int64
	// GPUs is the number of its whole GPUs, 0 to MostGPUs, and Model their model; nodes without GPUs may have no model.
	GPUs  int
	Model string
}

// OpenbPod is a row of a list of pods of Alibaba's openb trace.
type OpenbPod struct {
	Name string
	// CPU is in thousandths of a core, Memory in MiB.
	CPU, Memory int64
	// GPUs is the number of GPUs that it requests, 0 to MostGPUs, and Milli the part of each, in thousandths: 1 to
	// 1,000, and less than 1,000 only of a single GPU. Both are 0 in pods that ask for none.
	GPUs  int
	Milli int64
	// Models are the models it accepts, in alphabetical order and each once; none means any.
	Models []string
	// Created, Scheduled and Deleted are seconds since the beginning of the trace, or NoTime.
	Created, Scheduled, Deleted int64
}

// Bounds that no machine reaches, and with which sums of products stay within 64 bits.
const (
	mostMilliCPU = 100_000_000
	mostMiB      = 1_000_000_000
	mostSeconds  = 1 << 40
)

// OpenbNodes reads a list of nodes: a CSV file, compressed if its name ends in .gz. Its columns are named sn,
// cpu_milli, memory_mib, gpu and model, in any order; others are ignored. A file that cannot be used is bad input.
func OpenbNodes(path string) ([]OpenbNode, error) {
	return open(path, ReadOpenbNodes)
}

// OpenbPods reads a list of pods: a CSV file, compressed if its name ends in .gz. Its columns are named name,
// cpu_milli, memory_mib, num_gpu and gpu_milli, in any order; gpu_spec, creation_time, scheduled_time and deletion_time
// may be missing, and others are ignored. A file that cannot be used is bad input.
func OpenbPods(path string) ([]OpenbPod, error) {
	return open(path, ReadOpenbPods)
}

// ReadOpenbNodes is OpenbNodes of text that was read elsewhere; file is its name in errors.
func ReadOpenbNodes(in io.Reader, file string) ([]OpenbNode, error) {
	t, err := newTable(in, file, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, err
	}
	var nodes []OpenbNode
	for t.next() {
		n := OpenbNode{
			Name: t.name("sn"), CPU: t.number("cpu_milli", mostMilliCPU), Memory: t.number("memory_mib", mostMiB),
			GPUs: int(t.number("gpu", MostGPUs)), Model: t.text("model"),
		}
		if n.GPUs > 0 && n.Model == "" {
			t.refuse("the node has GPUs of no model", "name their model in the column model")
		}
		nodes = append(nodes, n)
	}
	return nodes, t.fault("a node")
}

// ReadOpenbPods is OpenbPods of text that was read elsewhere; file is its name in errors.
func ReadOpenbPods(in io.Reader, file string) ([]OpenbPod, error) {
	t, err := newTable(in, file, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
	if err != nil {
		return nil, err
	}
	var pods []OpenbPod
	for t.next() {
		p := OpenbPod{
			Name:   t.name("name"),
			CPU:    t.number("cpu_milli", mostMilliCPU),
			Memory: t.number("memory_mib", mostMiB),
			GPUs: int(
				t.number("num_gpu", MostGPUs),
			),
			Milli:  t.number("gpu_milli", GPU),
			Models: models(t.text("gpu_spec")),
			Created: t.instant(
				"creation_time",
			),
			Scheduled: t.instant("scheduled_time"),
			Deleted:   t.instant("deletion_time"),
		}
		switch {
		case p.GPUs == 0 && p.Milli > 0:
			t.refuse("the pod asks for parts of no GPU", "set gpu_milli to 0, or num_gpu to 1")
		case p.GPUs > 0 && p.Milli == 0:
			t.refuse("the pod asks for nothing of its GPUs", "set gpu_milli to 1 to 1000, or num_gpu to 0")
		case p.GPUs > 1 && p.Milli < GPU:
			t.refuse("the pod asks for parts of several GPUs", "set gpu_milli to 1000, or num_gpu to 1")
		}
		pods = append(pods, p)
	}
	return pods, t.fault("a pod")
}

// models are the names between bars.
func models(spec string) []string {
	if spec == "" {
		return nil
	}
	names := strings.Split(spec, "|")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
