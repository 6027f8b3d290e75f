package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet/devices"
	"github.com/lockstep-project/lockstep/topology"
)

// A Survey summarizes a fleet for people.
type Survey struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Nodes are all, Cordoned those of them that are.
	Nodes    int `json:"nodes"`
	Cordoned int `json:"cordoned"`
	// Accelerators are whole ones, counted as capacity or as devices.
	Accelerators int64 `json:"accelerators"`
	// Capacity is that of all nodes together.
	Capacity map[string]string `json:"capacity"`
	// Levels are those that the nodes' labels show, outermost first.
	Levels []SurveyedLevel `json:"levels"`
	// Groups are nodes that are alike but for their number, in the order of the first of each.
	Groups []SurveyedGroup `json:"groups"`
	// Classes are the names of the DeviceClasses.
	Classes []string `json:"deviceClasses"`
}

// SurveyedLevel is a level of the fleet.
type SurveyedLevel struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// Domains is the number of them, Smallest and Largest their extreme numbers of nodes.
	Domains  int `json:"domains"`
	Smallest int `json:"smallest"`
	Largest  int `json:"largest"`
	// Unlabeled are nodes without the label.
	Unlabeled int `json:"unlabeled"`
}

// SurveyedGroup is a number of nodes that are alike.
type SurveyedGroup struct {
	// Names are those of the nodes, with a star for each number.
	Names    string `json:"names"`
	Nodes    int    `json:"nodes"`
	Cordoned int    `json:"cordoned"`
	// Capacity and Devices are those of each node.
	Capacity map[string]string `json:"capacity"`
	Devices  []SurveyedDevices `json:"devices"`
}

// SurveyedDevices are the devices of one kind on a node.
type SurveyedDevices struct {
	Driver string `json:"driver"`
	// Type is the value of the driver's attribute of that name; empty if there is none.
	Type  string `json:"type"`
	Count int    `json:"count"`
	// Occupied is the number of them with a taint.
	Occupied int `json:"occupied"`
}

// Survey summarizes the whole fleet.
func (f Fleet) Survey() (Survey, error) {
	s := Survey{Name: f.Name, About: f.About, Nodes: len(f.Nodes), Groups: []SurveyedGroup{}, Classes: []string{}}
	profile, err := config.Placement(nil)
	if err != nil {
		return Survey{}, fmt.Errorf("reading which resources are accelerators: %w", err)
	}
	if s.Levels, err = f.levels(); err != nil {
		return Survey{}, err
	}
	for _, class := range f.Classes {
		s.Classes = append(s.Classes, class.Name)
	}
	on := f.published()
	total := corev1.ResourceList{}
	index := map[string]int{}
	for _, node := range f.Nodes {
		found := on[node.Name]
		s.Accelerators += found.accelerators
		for name, amount := range node.Status.Capacity {
			sum := total[name]
			sum.Add(amount)
			total[name] = sum
			if slices.Contains(profile.Accelerators, string(name)) {
				s.Accelerators += amount.Value()
			}
		}
		group := SurveyedGroup{
			Names: stem(node.Name), Capacity: amounts(node.Status.Capacity), Devices: found.kinds(),
		}
		key := fmt.Sprint(group)
		i, known := index[key]
		if !known {
			i, index[key] = len(s.Groups), len(s.Groups)
			s.Groups = append(s.Groups, group)
		}
		s.Groups[i].Nodes++
		if node.Spec.Unschedulable {
			s.Groups[i].Cordoned++
			s.Cordoned++
		}
	}
	s.Capacity = amounts(total)
	return s, nil
}

func amounts(list corev1.ResourceList) map[string]string {
	said := map[string]string{}
	for name, amount := range list {
		said[string(name)] = amount.String()
	}
	return said
}

// levels counts the domains of each level that the labels show.
func (f Fleet) levels() ([]SurveyedLevel, error) {
	nodes := make([]topology.Node, len(f.Nodes))
	for i, node := range f.Nodes {
		nodes[i] = topology.Node{Name: node.Name, Labels: node.Labels}
	}
	found := topology.DetectLevels(nodes)
	tree, err := topology.NewTree(found, nodes)
	if err != nil {
		return nil, fmt.Errorf("indexing the fleet's nodes: %w", err)
	}
	levels := make([]SurveyedLevel, len(found))
	for i, level := range found {
		sizes := map[string]int{}
		for node := range nodes {
			if domain, inside := tree.Domain(node, i); inside {
				sizes[domain.String()]++
			}
		}
		each := slices.Sorted(maps.Values(sizes))
		levels[i] = SurveyedLevel{
			Name: level.Name, Key: level.Key, Domains: len(each), Smallest: each[0], Largest: each[len(each)-1],
			Unlabeled: len(tree.Unlabelled(i)),
		}
	}
	return levels, nil
}

var numbers = regexp.MustCompile(`[0-9]+`)

// stem is a node's name with a star for each of its numbers. One that follows a letter belongs to a word, as in h100.
func stem(name string) string {
	parts := strings.Split(name, "-")
	for i, part := range parts {
		if numbers.FindString(part) == part && part != "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "-")
}

// publishedOn holds the devices that drivers publish on one node.
type publishedOn struct {
	accelerators int64
	counts       map[SurveyedDevices]int
	occupied     map[SurveyedDevices]int
}

func (f Fleet) published() map[string]publishedOn {
	on := map[string]publishedOn{}
	for _, slice := range f.Slices {
		if slice.Spec.NodeName == nil {
			continue
		}
		found, known := on[*slice.Spec.NodeName]
		if !known {
			found = publishedOn{counts: map[SurveyedDevices]int{}, occupied: map[SurveyedDevices]int{}}
		}
		for _, device := range slice.Spec.Devices {
			kind := SurveyedDevices{Driver: slice.Spec.Driver, Type: typeOf(device)}
			found.counts[kind]++
			if len(device.Taints) > 0 {
				found.occupied[kind]++
			}
			if devices.IsAccelerator(slice.Spec.Driver, device) {
				found.accelerators++
			}
		}
		on[*slice.Spec.NodeName] = found
	}
	return on
}

func typeOf(device resourcev1.Device) string {
	if said := device.Attributes["type"].StringValue; said != nil {
		return *said
	}
	return ""
}

// kinds are the devices by driver and type, sorted.
func (p publishedOn) kinds() []SurveyedDevices {
	kinds := []SurveyedDevices{}
	for kind, count := range p.counts {
		kind.Count, kind.Occupied = count, p.occupied[kind]
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b SurveyedDevices) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Type, b.Type))
	})
	return kinds
}
