package fleet

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

const (
	// FakeAnnotation is the one by which KWOK selects its nodes; its value is FakeValue.
	FakeAnnotation = "kwok.x-k8s.io/node"
	// FakeValue is the value of FakeAnnotation.
	FakeValue = "fake"

	kubeletVersion = "v1.37.2"
	lastApplied    = "kubectl.kubernetes.io/last-applied-configuration"
	// lifecycleTaints are put and removed by the cluster itself, from the state it sees.
	lifecycleTaints = "node.kubernetes.io/"
)

// readNode takes from a node of some cluster the fields that make it the same node in another: name, labels,
// annotations, taints, cordon and size. Fields that its old cluster wrote are dropped; so are its addresses, which lead
// to real kubelets. A node that was not ready is cordoned, since a fake kubelet reports every node ready.
func readNode(document yamlfile.Document) (corev1.Node, error) {
	var found corev1.Node
	for _, list := range []string{"capacity", "allocatable"} {
		if said, _, err := unstructured.NestedMap(document.Content, "status", list); err == nil {
			if _, err := readQuantities(document, said, "status", list); err != nil {
				return corev1.Node{}, err
			}
		}
	}
	if err := document.DecodeLenient(&found); err != nil {
		return corev1.Node{}, err
	}
	node := corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: found.Name, Labels: found.Labels, Annotations: found.Annotations},
		Spec: corev1.NodeSpec{
			ProviderID:    found.Spec.ProviderID,
			Unschedulable: found.Spec.Unschedulable || !ready(found),
			Taints:        ownTaints(found.Spec.Taints),
		},
		Status: corev1.NodeStatus{
			Capacity:    found.Status.Capacity,
			Allocatable: found.Status.Allocatable,
			NodeInfo:    found.Status.NodeInfo,
		},
	}
	delete(node.Annotations, lastApplied)
	if err := checkNode(document, node); err != nil {
		return corev1.Node{}, err
	}
	complete(&node)
	return node, nil
}

func checkNode(document yamlfile.Document, node corev1.Node) error {
	if node.Name == "" {
		return document.At("the Node has no name", "give it metadata.name", "metadata")
	}
	if problems := validation.IsDNS1123Subdomain(node.Name); len(problems) > 0 {
		return document.At("node name "+quote(node.Name)+" is not valid", mendBy(problems), "metadata", "name")
	}
	if len(node.Status.Capacity) == 0 && len(node.Status.Allocatable) == 0 {
		what, mend := "node "+node.Name+" has no capacity", "give it status.capacity, with at least cpu, memory and pods"
		return document.At(what, mend, "status")
	}
	return checkLabels(document, node.Labels, "metadata", "labels")
}

// checkLabels refuses labels that the API server would refuse. Keys below path in the document are those of labels.
func checkLabels(document yamlfile.Document, labels map[string]string, path ...any) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		here := append(slices.Clone(path), key)
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return document.At("label key "+quote(key)+" is not valid", mendBy(problems), here...)
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			what := "value " + quote(labels[key]) + " of label " + key + " is not valid"
			return document.At(what, mendBy(problems), here...)
		}
	}
	return nil
}

// mendBy is the rule that a name breaks, without the regular expression that follows it.
func mendBy(problems []string) string {
	rule, _, _ := strings.Cut(problems[0], " (e.g. ")
	return rule
}

func quote(s string) string {
	return `"` + s + `"`
}

// complete adds the fields that a kubelet, or KWOK in its place, would have written.
func complete(node *corev1.Node) {
	setDefault(&node.Annotations, FakeAnnotation, FakeValue)
	node.Annotations[FakeAnnotation] = FakeValue
	info := &node.Status.NodeInfo
	info.OperatingSystem = firstOf(info.OperatingSystem, node.Labels[corev1.LabelOSStable], "linux")
	info.Architecture = firstOf(info.Architecture, node.Labels[corev1.LabelArchStable], "amd64")
	info.KubeletVersion = firstOf(info.KubeletVersion, kubeletVersion)
	setDefault(&node.Labels, corev1.LabelHostname, node.Name)
	setDefault(&node.Labels, corev1.LabelOSStable, info.OperatingSystem)
	setDefault(&node.Labels, corev1.LabelArchStable, info.Architecture)
	if len(node.Status.Capacity) == 0 {
		node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	}
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
}

func setDefault(labels *map[string]string, key, value string) {
	if *labels == nil {
		*labels = map[string]string{}
	}
	if _, set := (*labels)[key]; !set {
		(*labels)[key] = value
	}
}

func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// ready reports whether a node's condition is Ready; a node without the condition was never started, not lost.
func ready(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return true
}

func ownTaints(taints []corev1.Taint) []corev1.Taint {
	var own []corev1.Taint
	for _, taint := range taints {
		if strings.HasPrefix(taint.Key, lifecycleTaints) {
			continue
		}
		taint.TimeAdded = nil
		own = append(own, taint)
	}
	return own
}
