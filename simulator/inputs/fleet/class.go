package fleet

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet/devices"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// class is a DeviceClass and where it was described.
type class struct {
	class resourcev1.DeviceClass
	from  yamlfile.Document
}

func readClass(document yamlfile.Document) (resourcev1.DeviceClass, error) {
	var found resourcev1.DeviceClass
	if err := document.Decode(&found); err != nil {
		return found, err
	}
	if err := checkName(document, found.ObjectMeta, "DeviceClass"); err != nil {
		return found, err
	}
	found.ObjectMeta = carried(found.ObjectMeta)
	for i, selector := range found.Spec.Selectors {
		if selector.CEL == nil {
			continue
		}
		if _, err := compiled(selector.CEL.Expression); err != nil {
			what := fmt.Sprintf("selector of class %s: %v", found.Name, err)
			return found, document.At(what, "mend the expression", "spec", "selectors", i, "cel", "expression")
		}
	}
	return found, nil
}

func compiled(expression string) (cel.CompilationResult, error) {
	result := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true}).
		CompileCELExpression(expression, cel.Options{DisableCostEstimation: true})
	if result.Error != nil {
		return result, result.Error
	}
	return result, nil
}

// checkClasses refuses two classes of one name.
func checkClasses(all []class) error {
	first := map[string]yamlfile.Document{}
	for _, one := range all {
		if other, taken := first[one.class.Name]; taken {
			what := fmt.Sprintf("class %s is described twice, first at %s", one.class.Name, nameLine(other))
			return &badinput.Error{Where: nameLine(one.from), What: what, Mend: "leave one of them out"}
		}
		first[one.class.Name] = one.from
	}
	return nil
}

// allClasses are the described classes and those that the models' drivers install, sorted by name. A described one
// stands for an installed one of its name.
func (c *content) allClasses() []resourcev1.DeviceClass {
	var all []resourcev1.DeviceClass
	for _, one := range c.classes {
		all = append(all, one.class)
	}
	for _, installed := range devices.Classes(c.drivers) {
		if !slices.ContainsFunc(all, func(one resourcev1.DeviceClass) bool { return one.Name == installed.Name }) {
			all = append(all, installed)
		}
	}
	slices.SortFunc(all, func(a, b resourcev1.DeviceClass) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// countedOnce refuses nodes that list GPUs in their capacity and have some that a driver publishes too: a scheduler
// would count the same hardware twice.
func (c *content) countedOnce() error {
	published := map[string]bool{}
	for _, one := range c.slices {
		if node := one.slice.Spec.NodeName; node != nil && slices.ContainsFunc(one.slice.Spec.Devices,
			func(device resourcev1.Device) bool { return devices.IsGPU(one.slice.Spec.Driver, device) }) {
			published[*node] = true
		}
	}
	for _, one := range c.nodes {
		listed := one.node.Status.Capacity[devices.GPUResource]
		if listed.IsZero() || !published[one.node.Name] {
			continue
		}
		path := []any{"capacity", devices.GPUResource}
		if _, isNode := one.from.Content["metadata"]; isNode {
			path = append([]any{"status"}, path...)
		}
		what := fmt.Sprintf("node %s lists %s in its capacity, and its GPUs are published as devices too: "+
			"they would be counted twice", one.node.Name, devices.GPUResource)
		mend := "take " + devices.GPUResource + " out of the capacity (pods may still ask for it, by the class " +
			"gpu.nvidia.com), or leave the devices out"
		return one.from.At(what, mend, path...)
	}
	return nil
}
