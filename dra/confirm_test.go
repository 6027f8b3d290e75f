package dra_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/topology"
)

// TestConfirm_GivesWhatFitPromises confirms one pod more than fit: all but the last are given devices, no device is
// given twice, and the ledger of the question is as before.
func TestConfirm_GivesWhatFitPromises(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 1<<20)
	each(t, 10, func(t *rapid.T, s *scene, _ *rand.Rand) {
		const limit = 4
		fleet := s.fleet()
		for _, n := range s.nodes {
			fit, err := f.Fit(t.Context(), fleet, n.Name, f.Demand(s.class, s.claims...))
			if err != nil {
				t.Fatalf("fit: %v", err)
			}
			var pods []*dra.Demand
			for p := range min(fit.Pods+1, limit) {
				var claims []*resourcev1.ResourceClaim
				for _, c := range s.claims {
					c = c.DeepCopy()
					c.Name, c.UID = fmt.Sprint(c.Name, "-", p), ""
					claims = append(claims, c)
				}
				pods = append(pods, f.Demand(s.class, claims...))
			}
			branch := dra.Fleet{Inventory: fleet.Inventory, Ledger: fleet.Ledger.Branch()}
			got, err := f.Confirm(t.Context(), branch, n.Name, pods...)
			if err != nil {
				t.Fatalf("confirm: %v", err)
			}
			if len(got.Pods) != min(fit.Pods, limit) || (got.Rule == "") != (fit.Pods >= limit) {
				t.Fatalf(
					"%s\nnode %s: %d of %d are given devices: %s, %+v",
					s,
					n.Name,
					len(got.Pods),
					len(pods),
					got.Rule,
					fit,
				)
			}
			if twice := givenTwice(got.Pods); twice != "" {
				t.Fatalf("%s\nnode %s: %s is given twice", s, n.Name, twice)
			}
			if again, err := f.Fit(t.Context(), fleet, n.Name, pods[0]); err != nil || again != fit {
				t.Fatalf("%s\nnode %s: the ledger has changed: %+v, before %+v, %v", s, n.Name, again, fit, err)
			}
		}
	})
}

// givenTwice names a device that two claims have for themselves.
func givenTwice(pods [][]dra.Given) string {
	seen := map[string]bool{}
	for _, given := range pods {
		for _, g := range given {
			for _, r := range g.Allocation.Devices.Results {
				device := strings.Join([]string{r.Driver, r.Pool, r.Device}, "/")
				if r.AdminAccess != nil || r.ShareID != nil {
					continue
				}
				if seen[device] {
					return device
				}
				seen[device] = true
			}
		}
	}
	return ""
}

// TestFit_BudgetEndsAsUnknown: when the conditions see nothing wrong and the search does not end, the answer is "not
// known", the same one each time, and more steps find out.
func TestFit_BudgetEndsAsUnknown(t *testing.T) {
	// Each card is at the root of one GPU; the GPUs of even number have the wrong NUMA node for theirs. Root and NUMA
	// node are each possible for all pairs, both together for half of them.
	all := sample(t, "h100-node.yaml")
	for i := range all[1].Spec.Devices {
		d := &all[1].Spec.Devices[i]
		d.Attributes["resource.kubernetes.io/numaNode"] = resourcev1.DeviceAttribute{
			IntValue: new(int64((i/4 + i) % 2)),
		}
	}
	want := pairs(8, "resource.kubernetes.io/pcieRoot")
	for i := range 8 {
		constraint := resourcev1.DeviceConstraint{Requests: []string{fmt.Sprint("gpu-", i), fmt.Sprint("nic-", i)}}
		constraint.MatchAttribute = new(resourcev1.FullyQualifiedName("resource.kubernetes.io/numaNode"))
		want.Spec.Devices.Constraints = append(want.Spec.Devices.Constraints, constraint)
	}
	fleet := dra.Fleet{Inventory: dra.NewInventory(all, node("h100-000")), Ledger: dra.NewLedger()}
	for _, c := range []struct {
		steps int64
		want  string
	}{
		{500, "{Pods:0 Rule:not known: the search for devices took more than 500 steps Unknown:true Wide:false}"},
		{20000, "{Pods:0 Rule:no combination of the free devices satisfies all requests and constraints Unknown:false Wide:false}"},
	} {
		f := dra.NewFitter(dra.DefaultFeatures(), c.steps)
		fit, err := f.Fit(t.Context(), fleet, "h100-000", f.Demand(lookup, want))
		if got := fmt.Sprintf("%+v", fit); got != c.want || err != nil {
			t.Errorf("%d steps: got %s, %v; want %s", c.steps, got, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	d := f.Demand(lookup, want)
	if fit, err := f.Fit(ctx, fleet, "h100-000", d); err == nil {
		t.Errorf("a canceled question is answered: %+v", fit)
	}
	if fit, err := f.Fit(t.Context(), fleet, "h100-000", d); err != nil || fit.Pods != 0 {
		t.Errorf("asked again: %+v, %v", fit, err)
	}
}

// TestFit_SharesOfSeveralCapacities: requests that draw unequally on two capacities of one device fit together, more of
// them than of any one alone.
func TestFit_SharesOfSeveralCapacities(t *testing.T) {
	gpu := resourcev1.Device{
		Name: "gpu-0", AllowMultipleAllocations: new(true),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"numa": {IntValue: new(int64(0))}},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": {Value: resource.MustParse("80")}, "cores": {Value: resource.MustParse("80")},
		},
	}
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example", NodeName: new("n0"), Devices: []resourcev1.Device{gpu},
		Pool: resourcev1.ResourcePool{Name: "n0", ResourceSliceCount: 1},
	}}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory([]*resourcev1.ResourceSlice{slice}, node("n0")), Ledger: dra.NewLedger(),
	}
	for name, lines := range map[string][]string{
		"plain":   {"a 1 any", "b 1 any", "c 1 any"},
		"aligned": {"a 1 any", "b 1 any", "c 1 any", "match gpu.example/numa: a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := claim("shares", lines...)
			for i, draws := range [][2]string{{"30", "10"}, {"30", "10"}, {"10", "30"}} {
				wanted.Spec.Devices.Requests[i].Exactly.Capacity = &resourcev1.CapacityRequirements{
					Requests: map[resourcev1.QualifiedName]resource.Quantity{
						"memory": resource.MustParse(draws[0]), "cores": resource.MustParse(draws[1]),
					},
				}
			}
			f := dra.NewFitter(dra.DefaultFeatures(), 0)
			d := f.Demand(func(name string) *resourcev1.DeviceClass { return deviceClass(name) }, wanted)
			if fit, err := f.Fit(t.Context(), fleet, "n0", d); err != nil || fit.Pods != 1 {
				t.Errorf("%+v, %v", fit, err)
			}
		})
	}
}

// fabric is three nodes of the first clique, two of the second, each with one GPU tray of the sample.
func fabric(t *testing.T) ([]*resourcev1.ResourceSlice, []*corev1.Node) {
	t.Helper()
	all := sample(t, "fabric-domain-slices.yaml")
	var nodes []*corev1.Node
	for i, clique := range []string{"1111", "2222", "1111", "2222", "1111", ""} {
		n := node(fmt.Sprint("n", i))
		if clique != "" {
			n.Labels["nvidia.com/gpu.clique"] = strings.Repeat(
				clique,
				2,
			) + map[string]string{"1111": "-aaaa.1", "2222": "-bbbb.1"}[clique]
		}
		nodes = append(nodes, n)
		all = append(all, rename(sample(t, "gb200-tray.yaml"), n.Name)...)
	}
	return all, nodes
}

// nodesOfDomain asks for so many nodes' worth of a clique.
func nodesOfDomain(n int64) *resourcev1.ResourceClaim {
	c := claim("fabric", "domain 1 fabric.example.com")
	c.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{
		Requests: map[resourcev1.QualifiedName]resource.Quantity{"nodes": *resource.NewQuantity(n, resource.DecimalSI)},
	}
	return c
}

// TestSharedClaim_PinsTheMembers: a claim that all members share can be given one clique's device, and then only that
// clique's nodes reach it; devices of a node pin all members to that node.
func TestSharedClaim_PinsTheMembers(t *testing.T) {
	published, nodes := fabric(t)
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	busy := holder("busy", "fabric.example.com/22222222-bbbb.1/clique")
	busy.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("share"))
	busy.Status.Allocation.Devices.Results[0].ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{
		"nodes": resource.MustParse("17"),
	}
	const full = "request domain needs 1 device of class fabric.example.com: 1 device, 0 free"
	const none = "request domain needs 1 device of class fabric.example.com: 0 devices, 0 free"
	for _, c := range []struct {
		name   string
		claims []*resourcev1.ResourceClaim
		want   string
	}{
		{
			"one node's worth of a clique",
			[]*resourcev1.ResourceClaim{nodesOfDomain(1)},
			"[{n0 [n0 n2 n4] false} {n1 [n1 n3] false}] [{" + none + " 1}]",
		},
		{
			"two nodes' worth of a clique",
			[]*resourcev1.ResourceClaim{nodesOfDomain(2)},
			"[{n0 [n0 n2 n4] false}] [{" + full + " 2} {" + none + " 1}]",
		},
		{
			"a clique and a GPU for all",
			[]*resourcev1.ResourceClaim{nodesOfDomain(1), claim("g", "gpu 1 gpu.nvidia.com")},
			"[{n0 [n0 n1 n2 n3 n4] true}] [{" + none + " 1}]",
		},
		{
			"GPUs for all",
			[]*resourcev1.ResourceClaim{claim("g", "gpu 4 gpu.nvidia.com")},
			"[{n0 [n0 n1 n2 n3 n4 n5] true}] []",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fleet := dra.Fleet{Inventory: dra.NewInventory(published, nodes...), Ledger: dra.NewLedger(busy)}
			choices, rules, err := f.Choices(t.Context(), fleet, f.Demand(lookup, c.claims...))
			if got := fmt.Sprint(choices, rules); got != c.want || err != nil {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// TestConfirm_OneLedgerForSharedDevices: two nodes that reach one device cannot both have it, which their fits alone do
// not show; one ledger for both does.
func TestConfirm_OneLedgerForSharedDevices(t *testing.T) {
	published, nodes := fabric(t)
	fleet := dra.Fleet{Inventory: dra.NewInventory(published, nodes...), Ledger: dra.NewLedger()}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	first, second := nodesOfDomain(10), nodesOfDomain(10)
	first.UID, second.UID = "first", "second"
	for _, n := range []string{"n0", "n2"} {
		if fit, err := f.Fit(t.Context(), fleet, n, f.Demand(lookup, first)); err != nil || fit.Pods != 1 || !fit.Wide {
			t.Fatalf("%s: %+v, %v", n, fit, err)
		}
	}
	branch := dra.Fleet{Inventory: fleet.Inventory, Ledger: fleet.Ledger.Branch()}
	a, err := f.Confirm(t.Context(), branch, "n0", f.Demand(lookup, first))
	if err != nil || len(a.Pods) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	b, err := f.Confirm(t.Context(), branch, "n2", f.Demand(lookup, second))
	if err != nil || len(b.Pods) != 0 || b.Rule == "" {
		t.Fatalf("%+v, %v", b, err)
	}
}

// TestGang_CountsDevicesPerNode plans a gang whose workers need two aligned pairs each: nodes count the members that
// they can take, those whose devices are taken are full, those that never could are barred with the rule.
func TestGang_CountsDevicesPerNode(t *testing.T) {
	h100, gb200 := sample(t, "h100-node.yaml"), sample(t, "gb200-tray.yaml")
	published := slices.Concat(rename(h100, "a"), rename(h100, "b"), rename(h100, "c"), rename(gb200, "d"))
	nodes := []topology.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	tree, err := topology.NewTree(nil, nodes)
	if err != nil {
		t.Fatal(err)
	}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory(published, node("a"), node("b"), node("c"), node("d")),
		Ledger: dra.NewLedger(holder("x", "gpu.nvidia.com/a/gpu-0", "gpu.nvidia.com/a/gpu-1", "gpu.nvidia.com/a/gpu-2"),
			holder("y", "dra.net/b/pci-0000-0c-00-0", "gpu.nvidia.com/b/gpu-7")),
	}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	worker := f.Demand(lookup, pairs(2, "resource.kubernetes.io/pcieRoot"))
	gang := func(workers int) topology.Gang {
		g := topology.Gang{
			Name:   "train",
			Shapes: []topology.Shape{{Demand: topology.Capacity{1}}, {Demand: topology.Capacity{1}}},
		}
		g.Members = append(g.Members, topology.Member{Name: "launcher", Shape: 1})
		for i := range workers {
			g.Members = append(g.Members, topology.Member{Name: fmt.Sprint("w", i)})
		}
		return g
	}
	cpu := topology.Ledger{
		Tree:  tree,
		Free:  []topology.Capacity{{9}, {9}, {9}, {9}},
		Total: []topology.Capacity{{9}, {9}, {9}, {9}},
	}
	ask := func(workers int) (dra.Question, topology.Placement, *topology.Shortfall) {
		t.Helper()
		q, err := f.Capacity(t.Context(), fleet, cpu, gang(workers), []*dra.Demand{worker, nil})
		if err != nil {
			t.Fatal(err)
		}
		p, short, err := topology.Place(q.Ledger, q.Gang)
		if err != nil {
			t.Fatal(err)
		}
		return q, p, short
	}
	q, _, short := ask(9)
	if short != nil || q.Kinds != 1 || q.Wide || q.Unknown != nil {
		t.Fatalf("9 workers do not fit: %v %+v", short, q)
	}
	if got, want := fmt.Sprint(
		q.Ledger.Free,
		q.Ledger.Total,
	), "[[9 2] [9 3] [9 4] [9 0]] [[9 4] [9 4] [9 4] [9 0]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, _, short = ask(10)
	if short == nil || short.Never || short.Members != 11 {
		t.Fatalf("10 workers: %+v", short)
	}
	want := []topology.Rule{
		{
			Rule:  "2 groups like gpu-0+nic-0, each aligned on resource.kubernetes.io/pcieRoot, are needed: 0 can be had",
			Nodes: 1,
		},
	}
	if !slices.Equal(short.Barred, want) {
		t.Errorf("barred: %v, want %v", short.Barred, want)
	}
	if _, _, short = ask(13); short == nil || !short.Never {
		t.Errorf("13 workers: %+v", short)
	}
	if len(cpu.Free[0]) != 1 {
		t.Errorf("what was given has changed: %v", cpu.Free)
	}
}

// TestConfirm_CompetingDemands: two demands that want the same devices have a number each, which do not know of each
// other; the allocator does.
func TestConfirm_CompetingDemands(t *testing.T) {
	tree, err := topology.NewTree(nil, []topology.Node{{Name: "h100-000"}})
	if err != nil {
		t.Fatal(err)
	}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory(sample(t, "h100-node.yaml"), node("h100-000")),
		Ledger:    dra.NewLedger(),
	}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	large, small := f.Demand(
		lookup,
		claim("large", "gpu 6 gpu.nvidia.com"),
	), f.Demand(
		lookup,
		claim("small", "gpu 3 gpu.nvidia.com"),
	)
	gang := topology.Gang{
		Name:    "train",
		Shapes:  make([]topology.Shape, 2),
		Members: []topology.Member{{Name: "a"}, {Name: "b", Shape: 1}},
	}
	q, err := f.Capacity(t.Context(), fleet, topology.Ledger{Tree: tree, Free: make([]topology.Capacity, 1)}, gang,
		[]*dra.Demand{large, small})
	if err != nil || q.Kinds != 2 || fmt.Sprint(q.Ledger.Free) != "[[1 2]]" {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, short, err := topology.Place(q.Ledger, q.Gang); err != nil || short != nil {
		t.Fatalf("the bound already refuses: %+v, %v", short, err)
	}
	got, err := f.Confirm(
		t.Context(),
		dra.Fleet{Inventory: fleet.Inventory, Ledger: fleet.Ledger.Branch()},
		"h100-000",
		large,
		small,
	)
	const rule = "request gpu needs 3 devices of class gpu.nvidia.com: 8 devices, 2 free"
	if err != nil || len(got.Pods) != 1 || got.Rule != rule {
		t.Errorf("%d pods: %s, %v", len(got.Pods), got.Rule, err)
	}
}
