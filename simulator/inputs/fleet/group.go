package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

const (
	// APIVersion is the version of the compact kind Fleet.
	APIVersion = "simulator.lockstep.dev/v1alpha1"
	// Kind is the compact description of a fleet.
	Kind = "Fleet"

	// maxNodes bounds the effect of a typing error in a count.
	maxNodes    = 200_000
	defaultPods = "110"
	typeLabel   = "type"
	typeKWOK    = "kwok"
)

// description is the compact kind; its groups are decoded one by one so that errors know their line.
type description struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		About  string           `json:"about"`
		Groups []map[string]any `json:"groups"`
	} `json:"spec"`
}

// group is a number of equal nodes.
type group struct {
	Name        string            `json:"name"`
	Counters    []counter         `json:"counters"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Capacity is also the allocatable amount. Pods may be left out.
	Capacity map[string]any `json:"capacity"`
	Taints   []corev1.Taint `json:"taints"`
	// Devices are the models of the machines, whose devices DRA drivers publish on each node.
	Devices []string `json:"devices"`
	// Deviations are nodes of the group that are not like the others.
	Deviations []deviation `json:"deviations"`
}

// counter runs from 1 to Count.
type counter struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func readGroups(document yamlfile.Document) (content, error) {
	var described description
	if err := document.Decode(&described); err != nil {
		return content{}, err
	}
	read := content{name: described.Metadata.Name, about: described.Spec.About}
	if read.name == "" {
		return content{}, document.At("the Fleet has no name", "give it metadata.name", "metadata")
	}
	groups, err := document.Elements("spec", "groups")
	if err != nil {
		return content{}, err
	}
	for _, from := range groups {
		made, err := readGroup(read.name, from, maxNodes-len(read.nodes))
		if err != nil {
			return content{}, err
		}
		read.add(made)
	}
	return read, nil
}

func readGroup(fleet string, from yamlfile.Document, room int) (content, error) {
	var described group
	if err := from.Decode(&described); err != nil {
		return content{}, err
	}
	if described.Name == "" {
		return content{}, from.At("the group has no name", "give it a name such as node-{node:03}")
	}
	if err := checkCounters(from, described, room); err != nil {
		return content{}, err
	}
	capacity, err := readCapacity(from, described)
	if err != nil {
		return content{}, err
	}
	models, err := readModels(from, described)
	if err != nil {
		return content{}, err
	}
	if err := checkDeviations(from, described, models); err != nil {
		return content{}, err
	}
	read := content{drivers: driversOf(models)}
	met := make([]int, len(described.Deviations))
	for count := range counts(fleet, described.Counters) {
		deviating, err := described.deviate(from, count, met)
		if err != nil {
			return content{}, err
		}
		node, err := makeNode(from, deviating.group, count)
		if err != nil {
			return content{}, err
		}
		node.Spec.Unschedulable = deviating.cordoned
		node.Status.Capacity, node.Status.Allocatable = capacity.DeepCopy(), capacity.DeepCopy()
		complete(&node)
		read.nodes = append(read.nodes, placed{node: node, from: from})
		for _, model := range models {
			for _, slice := range model.Slices(deviating.machine(fleet, &node)) {
				read.slices = append(read.slices, published{slice: slice, from: from})
			}
		}
	}
	return read, checkMet(from, described, met)
}

func checkCounters(from yamlfile.Document, described group, room int) error {
	seen := map[string]bool{}
	nodes := 1
	for i, one := range described.Counters {
		switch {
		case !counterName.MatchString(one.Name):
			what := fmt.Sprintf("counter name %q is not valid", one.Name)
			return from.At(what, "use lower-case letters, digits and dashes, a letter first", "counters", i, "name")
		case seen[one.Name]:
			what := fmt.Sprintf("counter %s is there twice", one.Name)
			return from.At(what, "give one of them another name", "counters", i, "name")
		case one.Count < 1:
			what := fmt.Sprintf("counter %s has count %d", one.Name, one.Count)
			return from.At(what, "count at least 1", "counters", i, "count")
		case one.Count > room/nodes:
			what := fmt.Sprintf("the fleet would have more than %d nodes", maxNodes)
			return from.At(what, "lower the counts", "counters", i, "count")
		}
		seen[one.Name] = true
		nodes *= one.Count
	}
	return nil
}

func readCapacity(from yamlfile.Document, described group) (corev1.ResourceList, error) {
	if len(described.Capacity) == 0 {
		mend := "give it capacity, such as {cpu: 144, memory: 960Gi, nvidia.com/gpu: 4}"
		return nil, from.At(fmt.Sprintf("group %s has no capacity", described.Name), mend, "name")
	}
	capacity, err := readQuantities(from, described.Capacity, "capacity")
	if _, set := capacity[corev1.ResourcePods]; !set && err == nil {
		capacity[corev1.ResourcePods] = resource.MustParse(defaultPods)
	}
	return capacity, err
}

// readQuantities reads amounts of resources, which stand at path in the document.
func readQuantities(from yamlfile.Document, said map[string]any, path ...any) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		here := append(slices.Clone(path), name)
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return nil, from.At(fmt.Sprintf("resource name %q is not valid", name), mendBy(problems), here...)
		}
		amount := fmt.Sprint(said[name])
		quantity, err := resource.ParseQuantity(amount)
		if err != nil || quantity.Sign() < 0 {
			what := fmt.Sprintf("capacity %q of %s is not a quantity", amount, name)
			return nil, from.At(what, "write a number such as 4, 500m or 960Gi", here...)
		}
		countable := strings.Contains(name, "/") || name == string(corev1.ResourcePods)
		if countable && quantity.MilliValue()%1000 != 0 {
			return nil, from.At(
				fmt.Sprintf("capacity %q of %s is a fraction", amount, name),
				"write a whole number",
				here...)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// makeNode is one node of the group, all but its status.
func makeNode(from yamlfile.Document, described group, count count) (corev1.Node, error) {
	name, err := expand(from, described.Name, count, "name")
	if err != nil {
		return corev1.Node{}, err
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return corev1.Node{}, from.At("node name "+quote(name)+" is not valid", mendBy(problems), "name")
	}
	labels, err := expandAll(from, described.Labels, count, "labels")
	if err != nil {
		return corev1.Node{}, err
	}
	if err := checkLabels(from, labels, "labels"); err != nil {
		return corev1.Node{}, err
	}
	annotations, err := expandAll(from, described.Annotations, count, "annotations")
	if err != nil {
		return corev1.Node{}, err
	}
	taints, err := expandTaints(from, described.Taints, count)
	if err != nil {
		return corev1.Node{}, err
	}
	setDefault(&labels, typeLabel, typeKWOK)
	return corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: taints},
	}, nil
}

// expandAll expands the values of a map, which stands at path in the document.
func expandAll(
	from yamlfile.Document, values map[string]string, at count, path ...any,
) (map[string]string, error) {
	expanded := make(map[string]string, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := expand(from, values[key], at, append(slices.Clone(path), key)...)
		if err != nil {
			return nil, err
		}
		expanded[key] = value
	}
	return expanded, nil
}

func expandTaints(from yamlfile.Document, taints []corev1.Taint, at count) ([]corev1.Taint, error) {
	var expanded []corev1.Taint
	for i, taint := range taints {
		value, err := expand(from, taint.Value, at, "taints", i, "value")
		if err != nil {
			return nil, err
		}
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			what := fmt.Sprintf("taint effect %q is not known", taint.Effect)
			return nil, from.At(what, "use NoSchedule, PreferNoSchedule or NoExecute", "taints", i, "effect")
		}
		if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
			return nil, from.At(
				fmt.Sprintf("taint key %q is not valid", taint.Key),
				mendBy(problems),
				"taints",
				i,
				"key",
			)
		}
		taint.Value = value
		if slices.ContainsFunc(expanded, func(other corev1.Taint) bool { return other.MatchTaint(&taint) }) {
			what := fmt.Sprintf("taint %s with effect %s is there twice", taint.Key, taint.Effect)
			return nil, from.At(what, "leave one of them out", "taints", i)
		}
		expanded = append(expanded, taint)
	}
	return expanded, nil
}
