package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet/devices"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// deviation sets some nodes of a group apart. Nodes are counted, not drawn, so that a fleet is the same always.
type deviation struct {
	// At names counters and the values of theirs that are meant; all, for counters that it does not name.
	At map[string][]int `json:"at"`
	// Every and From choose among these every so manieth, beginning with the one of that number; 1 if left out.
	Every *int `json:"every"`
	From  *int `json:"from"`

	Cordoned bool `json:"cordoned"`
	// Labels are set, Unlabeled are taken away.
	Labels    map[string]string `json:"labels"`
	Unlabeled []string          `json:"unlabeled"`
	// Missing and Occupied are names of devices: those that have failed, and those that are in use otherwise.
	Missing  []string `json:"missing"`
	Occupied []string `json:"occupied"`
}

func orOne(number *int) int {
	if number == nil {
		return 1
	}
	return *number
}

// deviating is a group as one node of it sees it.
type deviating struct {
	group

	cordoned          bool
	missing, occupied []string
}

// machine is the node as the models of its devices want it.
func (d deviating) machine(fleet string, node *corev1.Node) devices.Machine {
	return devices.Machine{
		Name: node.Name, Labels: node.Labels, Missing: d.missing, Occupied: d.occupied,
		UUID: func(device string) string { return uuidOf(fleet, "node="+node.Name, "device="+device) },
	}
}

// deviate returns the group as the node at this count sees it. Met counts, by deviation, the nodes that it could be
// about.
func (g group) deviate(from yamlfile.Document, at count, met []int) (deviating, error) {
	d := deviating{group: g}
	for i, one := range g.Deviations {
		if !one.holds(at) {
			continue
		}
		met[i]++
		if n := met[i] - orOne(one.From); n < 0 || n%orOne(one.Every) != 0 {
			continue
		}
		set, err := expandAll(from, one.Labels, at, "deviations", i, "labels")
		if err != nil {
			return deviating{}, err
		}
		if err := checkLabels(from, set, "deviations", i, "labels"); err != nil {
			return deviating{}, err
		}
		d.Labels = maps.Clone(d.Labels)
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		maps.Copy(d.Labels, set)
		maps.DeleteFunc(d.Labels, func(key, _ string) bool { return slices.Contains(one.Unlabeled, key) })
		d.cordoned = d.cordoned || one.Cordoned
		d.missing = slices.Concat(d.missing, one.Missing)
		d.occupied = slices.Concat(d.occupied, one.Occupied)
	}
	return d, nil
}

// holds reports whether the counters stand where the deviation wants them.
func (d deviation) holds(at count) bool {
	for name, values := range d.At {
		if !slices.Contains(values, at.value[name]) {
			return false
		}
	}
	return true
}

// checkDeviations rejects deviations that could never apply, and names of missing labels and devices.
func checkDeviations(from yamlfile.Document, described group, models []devices.Model) error {
	for i, one := range described.Deviations {
		here := []any{"deviations", i}
		if orOne(one.Every) < 1 || orOne(one.From) < 1 {
			return from.At("every and from of a deviation count from 1", "write 1 or more", here...)
		}
		if !one.Cordoned && len(one.Labels)+len(one.Unlabeled)+len(one.Missing)+len(one.Occupied) == 0 {
			mend := "give it cordoned, labels, unlabeled, missing or occupied"
			return from.At("the deviation changes nothing", mend, here...)
		}
		if err := checkAt(from, described, one, append(here, "at")); err != nil {
			return err
		}
		for _, key := range one.Unlabeled {
			if _, labeled := described.Labels[key]; !labeled {
				what := fmt.Sprintf("the group has no label %s to take away", key)
				return from.At(what, "name one of its labels", append(here, "unlabeled")...)
			}
		}
		if err := checkDevices(from, one.Missing, models, append(here, "missing")); err != nil {
			return err
		}
		if err := checkDevices(from, one.Occupied, models, append(here, "occupied")); err != nil {
			return err
		}
	}
	return nil
}

// checkDevices refuses names of devices, which stand at that path, that no model has.
func checkDevices(from yamlfile.Document, names []string, models []devices.Model, here []any) error {
	var known []string
	for _, model := range models {
		known = append(known, model.Devices()...)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return from.At("the group's devices include no "+name, deviceHint(known), here...)
		}
	}
	return nil
}

func deviceHint(known []string) string {
	if len(known) == 0 {
		return "give the group devices, such as [" + devices.Names()[0] + "]"
	}
	const shown = 10
	if len(known) > shown {
		return "there are " + strings.Join(known[:shown], ", ") + ", …"
	}
	return "there are " + strings.Join(known, ", ")
}

// checkAt refuses counters, and values of theirs, that the group does not have.
func checkAt(from yamlfile.Document, described group, one deviation, here []any) error {
	for _, name := range slices.Sorted(maps.Keys(one.At)) {
		i := slices.IndexFunc(described.Counters, func(c counter) bool { return c.Name == name })
		if i < 0 {
			return from.At(fmt.Sprintf("the group has no counter %s", name), "name one of its counters",
				append(slices.Clone(here), name)...)
		}
		for _, value := range one.At[name] {
			if most := described.Counters[i].Count; value < 1 || value > most {
				return from.At(fmt.Sprintf("counter %s is never %d", name, value),
					fmt.Sprintf("write values from 1 to %d", most), append(slices.Clone(here), name)...)
			}
		}
	}
	return nil
}

// checkMet refuses deviations that begin beyond the last node that they could be about.
func checkMet(from yamlfile.Document, described group, met []int) error {
	for i, one := range described.Deviations {
		if met[i] < orOne(one.From) {
			what := fmt.Sprintf("the deviation begins at node %d of %d", orOne(one.From), met[i])
			return from.At(what, "lower from, or let at mean more nodes", "deviations", i, "from")
		}
	}
	return nil
}

// readModels finds the models of a group's devices. Two of them cannot share a driver: it has one pool on a node.
func readModels(from yamlfile.Document, described group) ([]devices.Model, error) {
	var models []devices.Model
	taken := map[string]string{}
	for i, name := range described.Devices {
		model, known := devices.Find(name)
		if !known {
			what := fmt.Sprintf("device model %q is not known", name)
			return nil, from.At(what, "use "+strings.Join(devices.Names(), ", "), "devices", i)
		}
		for _, driver := range model.Drivers() {
			if other := taken[driver]; other != "" {
				what := fmt.Sprintf("%s and %s both have devices of driver %s", other, name, driver)
				return nil, from.At(what, "leave one of them out", "devices", i)
			}
			taken[driver] = name
		}
		models = append(models, model)
	}
	return models, nil
}

func driversOf(models []devices.Model) []string {
	var drivers []string
	for _, model := range models {
		drivers = append(drivers, model.Drivers()...)
	}
	return drivers
}
