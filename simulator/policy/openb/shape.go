package openb

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// Shape is the request of a pod. Pods of one shape are the same to every policy.
type Shape struct {
	CPU, Memory int64
	// GPUs is the number of GPUs that it requests, Milli the part of each.
	GPUs  int
	Milli int64
	// accepts reports for each model whether it is acceptable; nil accepts all, and nodes with CPUs alone.
	accepts []bool
}

// Shared reports whether a pod takes part of a GPU and leaves the rest to others.
func (s *Shape) Shared() bool {
	return s.GPUs == 1 && s.Milli < trace.GPU
}

// asks returns the part of all GPUs together that it requests.
func (s *Shape) asks() int64 {
	return int64(s.GPUs) * s.Milli
}

// class is the bit of the pods that GpuClustering places together: those that share a GPU, or have equally many.
func (s *Shape) class() uint64 {
	if s.Shared() {
		return 1
	}
	return 1 << s.GPUs
}

// demand is a shape before the models of a fleet are known, and without its memory, which fragmentation ignores.
type demand struct {
	cpu, milli int64
	gpus       int
	// models are joined by bars.
	models string
}

func demandOf(p *trace.OpenbPod) demand {
	return demand{cpu: p.CPU, milli: p.Milli, gpus: p.GPUs, models: strings.Join(p.Models, "|")}
}

func (d demand) compare(other demand) int {
	return cmp.Or(
		cmp.Compare(d.cpu, other.cpu), cmp.Compare(d.milli, other.milli),
		cmp.Compare(d.gpus, other.gpus), cmp.Compare(d.models, other.models))
}

// models are the names of a fleet's models in alphabetical order.
type models []string

func modelsOf(nodes []trace.OpenbNode) models {
	var names models
	for i := range nodes {
		names = append(names, nodes[i].Model)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (m models) index(name string) int {
	i, _ := slices.BinarySearch(m, name)
	return i
}

// accepted reports for each model whether it is one of the names between bars.
func (m models) accepted(spec string) []bool {
	if spec == "" {
		return nil
	}
	names := strings.Split(spec, "|")
	accepts := make([]bool, len(m))
	for i, name := range m {
		accepts[i] = slices.Contains(names, name)
	}
	return accepts
}

// shapesOf are the different shapes of pods, in the order of their first arrival, and the shape of each pod.
func shapesOf(pods []trace.OpenbPod, m models) (shapes []Shape, of []int) {
	type key struct {
		demand

		memory int64
	}
	known := map[key]int{}
	for i := range pods {
		p := &pods[i]
		k := key{demandOf(p), p.Memory}
		if _, ok := known[k]; !ok {
			known[k] = len(shapes)
			shapes = append(shapes, Shape{
				CPU: p.CPU, Memory: p.Memory, GPUs: p.GPUs, Milli: p.Milli, accepts: m.accepted(k.models),
			})
		}
		of = append(of, known[k])
	}
	return shapes, of
}
