package openb_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
)

// fleet are nodes with so many GPUs each, of one model and with plenty of all else.
func fleet(gpus ...int) (nodes []trace.OpenbNode) {
	for i, n := range gpus {
		nodes = append(nodes, trace.OpenbNode{
			Name: fmt.Sprintf("n%d", i), CPU: 128_000, Memory: 1 << 20, GPUs: n, Model: "G2",
		})
	}
	return nodes
}

// list are pods with so much of a GPU each, in thousandths; more than 1,000 are several GPUs, and 0 is a pod for CPU.
func list(millis ...int64) (pods []trace.OpenbPod) {
	for i, milli := range millis {
		p := trace.OpenbPod{Name: fmt.Sprintf("p%03d", i), CPU: 1000, Memory: 1}
		switch {
		case milli > 1000:
			p.GPUs, p.Milli = int(milli/1000), 1000
		case milli > 0:
			p.GPUs, p.Milli = 1, milli
		}
		pods = append(pods, p)
	}
	return pods
}

func newScene(tb testing.TB, nodes []trace.OpenbNode, pods []trace.OpenbPod, seed uint64) openb.Scene {
	tb.Helper()
	scene, err := openb.NewScene(nodes, pods, seed)
	if err != nil {
		tb.Fatal(err)
	}
	return scene
}

// events returns the events of a scene.
func events(tb testing.TB, scene openb.Scene, policy string) (all []openb.Event) {
	tb.Helper()
	if _, err := openb.Run(scene, policy, func(e openb.Event) { all = append(all, e) }); err != nil {
		tb.Fatal(err)
	}
	return all
}

func TestArrivals_AreTuned(t *testing.T) {
	const capacity, target = 8000, 10400
	small := []int64{500, 1000, 0, 300, 2000}
	large := slices.Repeat([]int64{500, 1000, 0, 300, 2000}, 5)
	for seed := range uint64(30) {
		// A list that requests too little is played whole and is followed by copies.
		asked, names := arrivals(t, newScene(t, fleet(8), list(small...), seed), small)
		first := slices.Sorted(slices.Values(names[:len(small)]))
		if !slices.Equal(first, []string{"p000", "p001", "p002", "p003", "p004"}) {
			t.Errorf("seed %d: first come %v, not each pod once", seed, first)
		}
		if asked > target || asked <= target-2000 {
			t.Errorf("seed %d: pods ask for %d of %d", seed, asked, capacity)
		}
		// Of one that asks for too much pods are taken away; a copy may follow if it fits.
		asked, names = arrivals(t, newScene(t, fleet(8), list(large...), seed), large)
		slices.Sort(names)
		if twice := len(names) - len(slices.Compact(names)); asked > target || asked <= target-2000 || twice > 5 {
			t.Errorf("seed %d: pods ask for %d of %d, %d come twice", seed, asked, capacity, twice)
		}
	}
}

// arrivals returns the total request of the arriving pods, and their names.
func arrivals(t *testing.T, scene openb.Scene, millis []int64) (asked int64, names []string) {
	t.Helper()
	for _, e := range events(t, scene, openb.FGD) {
		var i int
		if _, err := fmt.Sscanf(e.Pod, "p%03d", &i); err != nil {
			t.Fatal(err)
		}
		asked += millis[i]
		names = append(names, e.Pod)
	}
	if len(names) != scene.Arrivals() {
		t.Errorf("%d pods came of %d", len(names), scene.Arrivals())
	}
	return asked, names
}

// The paper's default list grows to about 10,866 pods.
func TestArrivals_OfTheDefaultList(t *testing.T) {
	for _, scene := range read(t, committed, ".csv.gz", "default", 3) {
		if n := scene.Arrivals(); n < 10_700 || n > 11_000 {
			t.Errorf("%d pods come", n)
		}
	}
}

func TestScene_SeedDecidesEverything(t *testing.T) {
	nodes, pods := fleet(1, 2, 4, 8, 8, 8), list(100, 200, 300, 400, 500, 1000, 2000, 0)
	reversed := slices.Clone(pods)
	slices.Reverse(reversed)
	turned := slices.Clone(nodes)
	slices.Reverse(turned)
	for _, policy := range openb.Policies() {
		first := fmt.Sprint(events(t, newScene(t, nodes, pods, 42), policy))
		if again := fmt.Sprint(events(t, newScene(t, nodes, pods, 42), policy)); again != first {
			t.Errorf("%s: the same seed twice:\n%s\n%s", policy, first, again)
		}
		if again := fmt.Sprint(events(t, newScene(t, turned, reversed, 42), policy)); again != first {
			t.Errorf("%s depends on the order of lines:\n%s\n%s", policy, first, again)
		}
		if other := fmt.Sprint(events(t, newScene(t, nodes, pods, 43), policy)); other == first {
			t.Errorf("%s: two seeds, one result: %s", policy, first)
		}
	}
}

// A seed gives the same result on every machine and with every release.
func TestScene_SeedIsStableAcrossReleases(t *testing.T) {
	scene := read(t, committed, ".csv.gz", "default", 1)[0]
	var got strings.Builder
	for _, policy := range openb.Policies() {
		r := play(t, scene, policy)
		fmt.Fprintf(&got, "%s %d of %d, %.3f %%, %s\n", r.Policy, r.Placed, r.Arrived, r.At(100).Allocated, r.Tie)
	}
	const want = `random 8159 of 10809, 86.560 %, any node with equal chances
dot-product 8023 of 10809, 90.573 %, first node of a fixed per-seed order
gpu-clustering 8031 of 10809, 90.684 %, first node of a fixed per-seed order
gpu-packing 8023 of 10809, 90.552 %, first node of a fixed per-seed order
best-fit 8171 of 10809, 92.659 %, first node of a fixed per-seed order
fgd 8357 of 10809, 95.268 %, first node of a fixed per-seed order
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

// All policies meet the same pods in the same order.
func TestPolicies_MeetTheSameArrivals(t *testing.T) {
	scene := newScene(t, fleet(1, 2, 4, 8), list(100, 200, 300, 400, 500, 1000, 2000, 0), 7)
	var want []string
	for _, policy := range openb.Policies() {
		var names []string
		for _, e := range events(t, scene, policy) {
			names = append(names, e.Pod)
		}
		if want == nil {
			want = names
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s met %v, not %v", policy, names, want)
		}
	}
}

// Pods for half a GPU of one node with two: they ask for 130 % in the end, and all of it is allocated at 100 %.
func TestSamples(t *testing.T) {
	scene := newScene(t, fleet(2), list(500, 500), 1)
	r := play(t, scene, openb.BestFit)
	if r.Arrived != 5 || r.Placed != 4 {
		t.Errorf("%d of %d placed", r.Placed, r.Arrived)
	}
	for _, tc := range []struct {
		percent int
		want    float64
	}{{-1, 0}, {0, 0}, {24, 0}, {25, 25}, {49, 25}, {80, 75}, {99, 75}, {100, 100}, {125, 100}, {130, 100}} {
		if got := r.At(tc.percent).Allocated; got != tc.want {
			t.Errorf("at %d %%: %v %% allocated, want %v", tc.percent, got, tc.want)
		}
	}
	// Whole GPUs are of use to these pods, and so are halves.
	if s := r.At(25); s.Fragmented != 0 || s.FragmentedOfFree != 0 {
		t.Errorf("%+v", s)
	}
}

func TestNewScene_RefusesBadInput(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  func() error
		want string
	}{
		{
			"nodes without GPUs", func() error { _, err := openb.NewScene(fleet(0), list(500), 1); return err },
			"the nodes of the fleet have no GPU; name a list of nodes with GPUs",
		},
		{
			"no nodes", func() error { _, err := openb.NewScene(nil, list(500), 1); return err },
			"the nodes of the fleet have no GPU; name a list of nodes with GPUs",
		},
		{
			"pods without GPUs", func() error { _, err := openb.NewScene(fleet(1), list(0), 1); return err },
			"the pods of the trace ask for no GPU; name a list of pods with GPUs",
		},
		{
			"crumbs",
			func() error {
				_, err := openb.NewScene(fleet(slices.Repeat([]int{8}, 1000)...), list(1, 0), 1)
				return err
			},
			"the pods of the trace ask for so little that about 20800000 of them would have to come; " +
				"name fewer nodes, or pods that ask for more GPUs",
		},
		{
			"policy", func() error { _, err := openb.Run(newScene(t, fleet(1), list(500), 1), "fdg", nil); return err },
			"there is no policy fdg for pods that share GPUs; " +
				"choose from random, dot-product, gpu-clustering, gpu-packing, best-fit, fgd",
		},
	} {
		if err := tc.err(); err == nil || err.Error() != tc.want || !badinput.Is(err) {
			t.Errorf("%s:\ngot  %v\nwant %s", tc.name, err, tc.want)
		}
	}
}

// Random takes each node with room equally often, and each GPU.
func TestRandom_IsFair(t *testing.T) {
	counts := map[string]float64{}
	const runs = 4000
	for seed := range uint64(runs) {
		e := events(t, newScene(t, fleet(2, 2, 2, 2), list(500), seed), openb.Random)[0]
		counts[e.Node]++
		counts[fmt.Sprint(e.GPUs)]++
	}
	for what, share := range map[string]float64{"n0": 4, "n1": 4, "n2": 4, "n3": 4, "[0]": 2, "[1]": 2} {
		want := runs / share
		if got := counts[what]; math.Abs(got-want) > 4*math.Sqrt(want) { // four standard deviations
			t.Errorf("%s was taken %v times of %d", what, got, runs)
		}
	}
}
