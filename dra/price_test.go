package dra_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	ten     = "[1,1,1,1,1,1,1,1,1,1]"
	product = `device.attributes["gpu.nvidia.com"].productName`
	usual   = product + ` == "x" && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0`
)

// selecting returns a claim for a device with this selector, which may have any character.
func selecting(selector string) *resourcev1.ResourceClaim {
	c := claim("train", "gpu 1 gpu.nvidia.com")
	c.Spec.Devices.Requests[0].Exactly.Selectors = selectors(selector)
	return c
}

// loops counts to ten, so many times in itself.
func loops(depth int, body string) string {
	for i := range depth {
		body = fmt.Sprintf("%s.all(v%d, %s)", ten, i, body)
	}
	return body
}

// TestDemand_DearSelectorsAreRefused: anyone may write a selector that the API server admits and that takes a fifth of
// a second for each device of the cluster, in the scheduling loop.
func TestDemand_DearSelectorsAreRefused(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	dear := loops(5, "v0 > 0") + ` && device.attributes["gpu.nvidia.com"].uuid == "x"`
	inventory := dra.NewInventory(sample(t, "h100-node.yaml"), node("h100-000"))
	fleet := dra.Fleet{Inventory: inventory, Ledger: dra.NewLedger()}
	tree, err := topology.NewTree(nil, []topology.Node{{Name: "h100-000"}})
	if err != nil {
		t.Fatal(err)
	}
	d := f.Demand(lookup, selecting(dear))
	none := make([]topology.Capacity, 1)
	began := time.Now()
	q, err := f.Capacity(t.Context(), fleet, topology.Ledger{Tree: tree, Free: none, Total: none},
		topology.Gang{Shapes: make([]topology.Shape, 1), Members: []topology.Member{{Name: "w-0"}}}, []*dra.Demand{d})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("the answer for one node took %v", took)
	}
	rule := "request gpu: with its selectors the pod's claims cost 655581 units of work for each device, at most 2000 " +
		"are admitted; use fewer or simpler ones, without loops and regular expressions"
	if got := q.Gang.Shapes[0].Barred[0]; got != rule {
		t.Errorf("got  %s\nwant %s", got, rule)
	}
}

// usualSelectors are those of documentation and of drivers' examples.
var usualSelectors = []string{
	usual,
	`device.driver == "gpu.nvidia.com"`,
	product + `.lowerAscii().contains("h100")`,
	product + `.lowerAscii().matches("^.*a100.*$")`,
	product + `.matches("(?i)^nvidia (h100|h200|b200)")`,
	product + ` in ["NVIDIA H100 80GB HBM3", "NVIDIA A100", "NVIDIA H200"]`,
	`device.attributes["gpu.nvidia.com"].driverVersion.compareTo(semver("1.0.0")) >= 0`,
	`device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("1.0.0"))`,
	`"gpu.nvidia.com" in device.attributes && "uuid" in device.attributes["gpu.nvidia.com"]`,
	`cel.bind(dra, device.attributes["gpu.nvidia.com"], dra.productName.startsWith("NVIDIA") && dra.index > 2 && dra.mig)`,
	`["h100", "h200"].exists(p, ` + product + `.lowerAscii().contains(p))`,
	`device.capacity["gpu.nvidia.com"].memory == quantity("80Gi")`,
	`device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("40Gi"))`,
	`device.attributes["dra.net"].?rdma.orValue(false)`,
	`has(device.attributes["dra.net"].ipv4) && cidr("10.0.0.0/8").containsIP(device.attributes["dra.net"].ipv4)`,
	`!device.attributes["dra.net"].rdma ? false : device.attributes["dra.net"].mtu >= 1500`,
	`device.attributes["gpu.nvidia.com"].index % 2 == 0`,
	`device.allowMultipleAllocations == true`,
}

// TestDemand_UsualSelectorsAreAdmitted also where each of many requests has one.
func TestDemand_UsualSelectorsAreAdmitted(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	for _, s := range usualSelectors {
		d := f.Demand(lookup, selecting(s))
		if d.Fault != "" || d.Price() > dra.MostPrice/20 {
			t.Errorf("%s: price %d %s", s, d.Price(), d.Fault)
		}
		t.Logf("%5d %s", d.Price(), s)
	}
	var lines []string
	for i := range resourcev1.DeviceRequestsMaxSize {
		lines = append(lines, fmt.Sprintf("r%d 1 gpu.nvidia.com|%s", i, usual))
	}
	if d := f.Demand(lookup, claim("c", lines...)); d.Fault != "" {
		t.Error(d.Fault)
	}
	class := standard()[0].DeepCopy()
	class.Spec.Selectors = selectors(loops(5, "v0 > 0"))
	admin := func(string) *resourcev1.DeviceClass { return class }
	if d := f.Demand(admin, claim("c", "gpu 1 any")); d.Fault != "" {
		t.Errorf("a selector of a class, which administrators write: %s", d.Fault)
	}
}

// TestDemand_PricesAreAddedUp over claims, alternatives and derived attributes.
func TestDemand_PricesAreAddedUp(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	half := loops(2, "v0 > 0") + " && " + loops(2, "v1 > 0")
	one := selecting(half)
	if d := f.Demand(lookup, one); d.Fault != "" || d.Price() < dra.MostPrice/2 {
		t.Fatal(d.Price(), d.Fault)
	}
	alternatives, derived := claim("train"), selecting(half)
	for _, name := range []string{"a", "b"} {
		alternatives.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", FirstAvailable: append(
			firstAvailable(alternatives), resourcev1.DeviceSubRequest{
				Name: name, DeviceClassName: "gpu.nvidia.com", Count: 1, Selectors: selectors(half),
				AllocationMode: resourcev1.DeviceAllocationModeExactCount,
			},
		)}}
	}
	derived.Spec.Devices.Requests[0].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{
		{Name: "example.com/a", Expression: half},
	}
	for name, claims := range map[string][]*resourcev1.ResourceClaim{
		"two claims": {one, one}, "alternatives": {alternatives}, "a derived attribute": {derived},
	} {
		if d := f.Demand(lookup, claims...); !strings.Contains(d.Fault, "at most 2000 are admitted") {
			t.Errorf("%s: price %d %s", name, d.Price(), d.Fault)
		}
	}
}

func firstAvailable(c *resourcev1.ResourceClaim) []resourcev1.DeviceSubRequest {
	if len(c.Spec.Devices.Requests) == 0 {
		return nil
	}
	return c.Spec.Devices.Requests[0].FirstAvailable
}

// dearest are loops with the calls that take the most time for their cost in CEL.
func dearest() map[string]func(loops int) string {
	long := `device.attributes["gpu.nvidia.com"].long`
	out := map[string]func(int) string{}
	for name, b := range map[string]string{
		"compare": "v0 > 0", "equal texts": long + " == " + long, "contains": "!" + long + `.contains("aab")`,
		"lower":  long + `.lowerAscii() != ""`,
		"regexp": "!" + long + `.matches("(a?){64}b")`, "long regexp": "!" + long + `.matches("(a{0,30}){0,30}b")`,
		"find": long + `.find("(a|aa)*b") == ""`, "findAll": long + `.findAll("a").size() > 0`,
		"quantity": `quantity("1Gi").add(quantity("2Gi")).compareTo(quantity("3Gi")) == 0`,
		"semver":   `semver("1.2.3-alpha.1+build.5").compareTo(semver("1.2.4")) < 0`,
		"ip":       `ip("2001:db8::1").family() == 6`, "cidr": `cidr("1.2.3.0/24").containsIP("1.2.3.4")`,
		"url": `url("https://a.b/c?d=e").getHost() == "a.b"`, "split": long + `.split("").size() > 0`,
		"replace": `"aaaaaaaaaaaaaaaa".replace("a", "bbbbbbbbbbbb").size() > 0`, "list": ten + " == " + ten,
		"sum": ten + ".sum() > 0", "map": ten + ".map(x, x + 1).size() > 0",
		"validate": "!format.named(\"dns1123Label\").value().validate(" + long + ").hasValue()",
		"maps":     "device.attributes == device.attributes",
		"device":   "device == device",
		"names":    `device.attributes["gpu.nvidia.com"].all(k, k != "")`,
		"optional": `device.attributes["gpu.nvidia.com"].?long.orValue("") != ""`,
	} {
		out[name] = func(n int) string {
			return "[" + strings.TrimSuffix(
				strings.Repeat("1,", n),
				",",
			) + "].all(v0, " + b + ") && " + long + ` == "x"`
		}
	}
	return out
}

// BenchmarkSelectors_DearestAdmitted gives the time for each device of the dearest admitted selectors of many kinds.
func BenchmarkSelectors_DearestAdmitted(b *testing.B) {
	const devices = 8
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "n", ResourceSliceCount: 1},
	}}
	for i := range devices {
		d := resourcev1.Device{Name: fmt.Sprint("gpu-", i)}
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": {Value: resource.MustParse("80Gi")},
		}
		d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"long": {StringValue: new(strings.Repeat("a", 63) + strconv.Itoa(i))}, "type": {StringValue: new("gpu")},
		}
		for a := range 29 {
			d.Attributes[resourcev1.QualifiedName(fmt.Sprint("a", a))] = resourcev1.DeviceAttribute{
				StringValue: new("v"),
			}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, d)
	}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory([]*resourcev1.ResourceSlice{slice}, node("n")),
		Ledger:    dra.NewLedger(),
	}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	for name, of := range dearest() {
		b.Run(name, func(b *testing.B) {
			most := 0
			for step := 512; step > 0; step /= 2 {
				if f.Demand(lookup, selecting(of(most+step))).Fault == "" {
					most += step
				}
			}
			if most == 0 {
				b.Skip(f.Demand(lookup, selecting(of(1))).Fault)
			}
			for b.Loop() {
				d := f.Forgetful().Demand(lookup, selecting(of(most)))
				if fit, err := f.Forgetful().Fit(b.Context(), fleet, "n", d); err != nil || fit.Pods != 0 {
					b.Error(fit, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/devices, "µs/device")
		})
	}
}

// TestDemand_UnboundedSelectorsAreRefused: the cost that CEL counts says nothing about the work of these.
func TestDemand_UnboundedSelectorsAreRefused(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	for s, want := range map[string]string{
		`"%.9999f".format([1.5]) != ""`:                                   "function format",
		`["(a{0,30}){0,30}b"].all(r, ` + product + `.matches(r))`:         "a regular expression that is not a literal",
		`[device].size() > 0`:                                             "a list of maps",
		`dyn(device.attributes) == dyn(device.attributes)`:                "dyn of a list or a map",
		`[[1, 1], [1, 1]] == [[1, 1], [1, 1]]`:                            "a map or a list of lists as an operand of _==_",
		`[1, 1] in [[1, 1], [1, 2]]`:                                      "a search for a list or a map",
		`{"a": 1}.size() > 0`:                                             "a map",
		`"a,b".split(",").join("") == "a"`:                                "texts or lists of unknown length",
		`timestamp("2020-01-01T00:00:00Z").getFullYear("Asia/Tokyo") > 0`: "function getFullYear",
	} {
		d := f.Demand(lookup, selecting(s))
		want = "request gpu: a selector uses " + want + ", whose work for each device is not bounded; write it without"
		if d.Fault != want {
			t.Errorf("%s:\ngot  %s\nwant %s", s, d.Fault, want)
		}
	}
}
