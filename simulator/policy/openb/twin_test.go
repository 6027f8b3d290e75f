package openb_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
)

// twin plays scenes in the simplest way. It stores only the node of each running pod, computes everything anew for each
// pod and node, and has the rules as they are published, in fractions.
type twin struct {
	nodes []trace.OpenbNode
	runs  map[string][]twinRun
	list  []trace.OpenbPod
}

type twinRun struct {
	pod  trace.OpenbPod
	gpus []int
}

// twinState is the free room of a node.
type twinState struct {
	trace.OpenbNode

	free    []int64
	classes map[int]bool
}

func (w *twin) state(n trace.OpenbNode) twinState {
	s := twinState{OpenbNode: n, free: slices.Repeat([]int64{1000}, n.GPUs), classes: map[int]bool{}}
	for _, r := range w.runs[n.Name] {
		s = s.with(r.pod, r.gpus)
	}
	return s
}

func (s twinState) with(p trace.OpenbPod, gpus []int) twinState {
	after := twinState{OpenbNode: s.OpenbNode, free: slices.Clone(s.free), classes: map[int]bool{}}
	for class := range s.classes {
		after.classes[class] = true
	}
	after.CPU -= p.CPU
	after.Memory -= p.Memory
	for _, gpu := range gpus {
		after.free[gpu] -= p.Milli
		after.classes[class(p)] = true
	}
	return after
}

// class returns the number of GPUs of a pod, or 0 for a part of one.
func class(p trace.OpenbPod) int {
	if p.Milli < 1000 {
		return 0
	}
	return p.GPUs
}

func (s twinState) total() (sum int64) {
	for _, free := range s.free {
		sum += free
	}
	return sum
}

// fitting are the GPUs that have as much free as the pod asks for.
func (s twinState) fitting(p trace.OpenbPod) (gpus []int) {
	for i, free := range s.free {
		if p.GPUs > 0 && free >= p.Milli {
			gpus = append(gpus, i)
		}
	}
	return gpus
}

func (s twinState) fits(p trace.OpenbPod) bool {
	return s.CPU >= p.CPU && s.Memory >= p.Memory && s.accepted(p) && len(s.fitting(p)) >= p.GPUs
}

func (s twinState) accepted(p trace.OpenbPod) bool {
	return len(p.Models) == 0 || slices.Contains(p.Models, s.Model)
}

// popularPods has each pod of the list whose shape is among the most frequent, until those are 95 % of all.
func (w *twin) popularPods() (chosen []trace.OpenbPod) {
	byShape := map[string][]trace.OpenbPod{}
	for _, p := range w.list {
		key := fmt.Sprintf("%020d %04d %02d %v", p.CPU, p.Milli, p.GPUs, strings.Join(p.Models, "|"))
		byShape[key] = append(byShape[key], p)
	}
	var keys []string
	for key := range byShape {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byShape[b]), len(byShape[a])), cmp.Compare(b, a))
	})
	for _, key := range keys {
		if float64(len(chosen)) >= 0.95*float64(len(w.list)) {
			break
		}
		chosen = append(chosen, byShape[key]...)
	}
	return chosen
}

// fragmented is the mean of F_n(m) over the pods, in thousandths of a GPU.
func (s twinState) fragmented(pods []trace.OpenbPod) *big.Rat {
	var sum int64
	for _, m := range pods {
		if m.GPUs == 0 || s.CPU < m.CPU || !s.accepted(m) || len(s.fitting(m)) < m.GPUs {
			sum += s.total()
			continue
		}
		for _, free := range s.free {
			if free < m.Milli {
				sum += free
			}
		}
	}
	return big.NewRat(sum, int64(len(pods)))
}

// choose are the score of a node for a pod, and the GPUs that the pod would take.
func (w *twin) choose(policy string, s twinState, p trace.OpenbPod) (score int64, gpus []int) {
	switch fitting := s.fitting(p); {
	case p.GPUs == 1 && policy == openb.FGD:
		best := int64(-1)
		for _, gpu := range fitting {
			if score := w.score(policy, s, p, []int{gpu}); score > best {
				best, gpus = score, []int{gpu}
			}
		}
		return best, gpus
	case p.GPUs == 1:
		gpus = []int{slices.MinFunc(fitting, func(a, b int) int {
			return cmp.Or(cmp.Compare(s.free[a], s.free[b]), cmp.Compare(a, b))
		})}
	default:
		gpus = fitting[:p.GPUs]
	}
	return w.score(policy, s, p, gpus), gpus
}

func (w *twin) score(policy string, s twinState, p trace.OpenbPod, gpus []int) int64 {
	part := func(a, b int64) *big.Rat { return big.NewRat(a, b) }
	asked := int64(p.GPUs) * p.Milli
	half, one := part(1, 2), part(1, 1)
	points := func(loss *big.Rat) int64 { // ⌊100·(1 − ½·loss)⌋
		x := new(big.Rat).Sub(one, new(big.Rat).Mul(half, loss))
		x.Mul(x, part(100, 1))
		return new(big.Int).Quo(x.Num(), x.Denom()).Int64()
	}
	used := 0
	for _, free := range s.free {
		if free < 1000 {
			used++
		}
	}
	switch policy {
	case openb.DotProduct:
		cpu := new(big.Rat).Mul(part(s.CPU, 128000), part(p.CPU, 128000))
		gpu := new(big.Rat).Mul(part(s.total(), 8000), part(asked, 8000))
		return points(new(big.Rat).Add(cpu, gpu))
	case openb.BestFit:
		return points(new(big.Rat).Add(part(s.CPU-p.CPU, 128000), part(s.total()-asked, 8000)))
	case openb.FGD:
		pods := w.popularPods()
		shrinks, _ := new(big.Rat).Sub(s.fragmented(pods), s.with(p, gpus).fragmented(pods)).Float64()
		return int64(100 / (1 + math.Exp(-shrinks/1000)))
	}
	if p.GPUs == 0 {
		return 0
	}
	if policy == openb.GPUClustering {
		score := 25 * (8000 - s.total()) / 8000
		switch {
		case len(s.classes) == 0:
			return score + 25
		case s.classes[class(p)] && len(s.classes) == 1:
			return score + 75
		case s.classes[class(p)]:
			return score + 50
		}
		return score
	}
	var whole, percent int64
	for _, gpu := range gpus {
		if s.free[gpu] == 1000 {
			whole++
		}
		percent += s.free[gpu] / 10
	}
	switch {
	case used == 0:
		return max(33-int64(len(s.free)), int64(len(s.free)))
	case whole > 0:
		return max(50-whole, 33)
	}
	return max(100-percent/10, 50)
}

// place finds the first node with the highest score, or none.
func (w *twin) place(policy string, p trace.OpenbPod) openb.Event {
	event, best := openb.Event{Pod: p.Name}, int64(math.MinInt64)
	for _, n := range w.nodes {
		if s := w.state(n); s.fits(p) {
			if score, gpus := w.choose(policy, s, p); score > best {
				best, event.Node, event.GPUs = score, n.Name, gpus
			}
		}
	}
	return event
}

// bind records a decision, and returns its fault.
func (w *twin) bind(p trace.OpenbPod, event openb.Event) string {
	i := slices.IndexFunc(w.nodes, func(n trace.OpenbNode) bool { return n.Name == event.Node })
	if i < 0 {
		for _, n := range w.nodes {
			if w.state(n).fits(p) {
				return "dropped, and fits on " + n.Name
			}
		}
		return ""
	}
	w.runs[event.Node] = append(w.runs[event.Node], twinRun{p, event.GPUs})
	if s := w.state(w.nodes[i]); s.CPU < 0 || s.Memory < 0 || !s.accepted(p) || len(event.GPUs) != p.GPUs ||
		slices.ContainsFunc(s.free, func(free int64) bool { return free < 0 }) {
		return fmt.Sprintf("does not fit: %+v", s)
	}
	return ""
}

// Every pod of random small worlds is placed as by the twin, to the GPU; and allocation and fragmentation are the
// twin's.
func TestPolicies_DecideAsTheTwin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		nodes, pods := smallWorld(rand.New(rand.NewPCG(seed, 0)))
		scene, err := openb.NewScene(nodes, pods, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range openb.Policies() {
			compareWithTwin(t, scene, policy, nodes, pods)
		}
	}
}

func compareWithTwin(t *testing.T, scene openb.Scene, policy string, nodes []trace.OpenbNode, pods []trace.OpenbPod) {
	t.Helper()
	w := &twin{runs: map[string][]twinRun{}, list: pods}
	for _, name := range openb.NodeOrder(scene) {
		w.nodes = append(
			w.nodes,
			nodes[slices.IndexFunc(nodes, func(n trace.OpenbNode) bool { return n.Name == name })],
		)
	}
	placed, asked := 0, int64(0)
	samples := map[int][]openb.Sample{}
	result, err := openb.Run(scene, policy, func(got openb.Event) {
		p := pods[slices.IndexFunc(pods, func(p trace.OpenbPod) bool { return p.Name == got.Pod })]
		if policy != openb.Random {
			if want := w.place(policy, p); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s: got %+v, want %+v for %+v", policy, got, want, p)
			}
		}
		if wrong := w.bind(p, got); wrong != "" {
			t.Fatalf("%s: %+v %s", policy, got, wrong)
		}
		if got.Node != "" {
			placed++
		}
		asked += int64(p.GPUs) * p.Milli
		sample, all := w.sample()
		percent := int(math.Round(100 * float64(asked) / all))
		samples[percent] = append(samples[percent], sample)
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Placed != placed {
		t.Errorf("%s: %d placed, twin: %d", policy, result.Placed, placed)
	}
	for percent, sampled := range samples {
		if got, want := result.At(percent), mean(sampled); percent > 0 && !alike(got, want) {
			t.Errorf("%s at %d %%: %+v, twin: %+v", policy, percent, got, want)
		}
	}
}

// sample is the state of all GPUs, and their amount.
func (w *twin) sample() (sample openb.Sample, all float64) {
	popular := w.popularPods()
	var free, fragmented float64
	for _, n := range w.nodes {
		s := w.state(n)
		f, _ := s.fragmented(popular).Float64()
		all, free, fragmented = all+1000*float64(n.GPUs), free+float64(s.total()), fragmented+f
	}
	sample = openb.Sample{Allocated: 100 * (all - free) / all, Fragmented: 100 * fragmented / all}
	if free > 0 {
		sample.FragmentedOfFree = 100 * fragmented / free
	}
	return sample, all
}

func mean(samples []openb.Sample) openb.Sample {
	var m openb.Sample
	for _, s := range samples {
		n := float64(len(samples))
		m.Allocated += s.Allocated / n
		m.Fragmented += s.Fragmented / n
		m.FragmentedOfFree += s.FragmentedOfFree / n
	}
	return m
}

func alike(a, b openb.Sample) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
	return near(a.Allocated, b.Allocated) && near(a.Fragmented, b.Fragmented) &&
		near(a.FragmentedOfFree, b.FragmentedOfFree)
}

// smallWorld has a few nodes that differ and pods of few shapes, so that scores tie, models matter and all resources
// run out.
func smallWorld(chance *rand.Rand) (nodes []trace.OpenbNode, pods []trace.OpenbPod) {
	models := []string{"A", "B", "C"}
	for i := range 1 + chance.IntN(8) {
		nodes = append(nodes, trace.OpenbNode{
			Name: fmt.Sprintf("node-%02d", i), CPU: 16000 << chance.IntN(4), Memory: 64000 << chance.IntN(4),
			GPUs: []int{1, 2, 4, 8, 0}[chance.IntN(5)], Model: models[chance.IntN(3)],
		})
	}
	nodes[0].GPUs = max(nodes[0].GPUs, 2)
	var shapes []trace.OpenbPod
	for range 3 + chance.IntN(12) {
		p := trace.OpenbPod{CPU: 1000 * chance.Int64N(17), Memory: 1000 * chance.Int64N(65)}
		switch chance.IntN(5) {
		case 0:
		case 1:
			p.GPUs, p.Milli = 1<<chance.IntN(4), 1000
		case 2:
			p.GPUs, p.Milli = 1, 1000
		default:
			p.GPUs, p.Milli = 1, 100*(1+chance.Int64N(9))
		}
		if chance.IntN(4) == 0 {
			p.Models = models[:1+chance.IntN(2)]
		}
		shapes = append(shapes, p)
	}
	shapes[0].GPUs, shapes[0].Milli = 1, 500
	for i := range 20 + chance.IntN(60) {
		p := shapes[min(chance.IntN(len(shapes)), chance.IntN(len(shapes)))]
		p.Name = fmt.Sprintf("pod-%03d", i)
		pods = append(pods, p)
	}
	pods[0].GPUs, pods[0].Milli = 1, 500
	return nodes, pods
}
