package anonymize_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture/anonymize"
	"github.com/lockstep-project/lockstep/topology"
)

// cluster is a small cluster. Objects are known by their resource versions, which anonymizing leaves alone.
type cluster struct {
	Nodes  []*corev1.Node
	Groups []*schedulingv1beta1.PodGroup
	Pods   []*corev1.Pod
	Claims []*corev1.PersistentVolumeClaim
}

// The words that a drawn cluster is made of. None of them may be left.
func planted() []string {
	return append(places(), "zeus", "hera", "apollo", "athena", "ares", "hermes", "hestia", "dionysus")
}

// The words that domains are called by. No pod and no namespace is called like a domain.
func places() []string { return []string{"olympus", "hades", "ithaca", "delphi", "troy"} }

type draw struct{ *rand.Rand }

func (d draw) place() string { return places()[d.IntN(len(places()))] }

func (d draw) word() string { return planted()[len(places()):][d.IntN(len(planted())-len(places()))] }

func (d draw) name() string { return fmt.Sprintf("%s-%s-%d", d.word(), d.word(), d.IntN(120)) }

func (d draw) key() string {
	keys := []string{
		"topology.kubernetes.io/zone", topology.LabelClique, "zeus.example/hall", "hera", "rack", "zeus.example/size",
	}
	return keys[d.IntN(len(keys))]
}

func (d draw) value(key string) string {
	switch key {
	case topology.LabelClique:
		return fmt.Sprintf("%s.%d", d.place(), d.IntN(3))
	case "zeus.example/size":
		return strconv.Itoa(1_000_000 * (1 + d.IntN(5)))
	}
	return []string{d.place(), d.place() + strconv.Itoa(d.IntN(12)), "true", strconv.Itoa(d.IntN(3))}[d.IntN(4)]
}

func (d draw) labels() map[string]string {
	drawn := map[string]string{}
	for range d.IntN(5) {
		key := d.key()
		drawn[key] = d.value(key)
	}
	return drawn
}

func (d draw) requirement() corev1.NodeSelectorRequirement {
	key := d.key()
	if d.IntN(4) == 0 {
		return corev1.NodeSelectorRequirement{
			Key: "zeus.example/size", Operator: corev1.NodeSelectorOpGt, Values: []string{d.value("zeus.example/size")},
		}
	}
	operators := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}
	return corev1.NodeSelectorRequirement{
		Key: key, Operator: operators[d.IntN(2)], Values: []string{d.value(key), d.value(key)},
	}
}

func (d draw) cluster() *cluster {
	c := &cluster{}
	for i := range 3 + d.IntN(8) {
		key := d.key()
		c.Nodes = append(c.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf(
					"%s-%d-%d",
					d.place(),
					d.IntN(20),
					i,
				),
				ResourceVersion: strconv.Itoa(1000 + i),
				Labels:          d.labels(),
			},
			Spec: corev1.NodeSpec{
				ProviderID: d.name(),
				Taints:     []corev1.Taint{{Key: key, Value: d.value(key), Effect: corev1.TaintEffectNoSchedule}},
			},
			Status: corev1.NodeStatus{
				Images: []corev1.ContainerImage{
					{Names: []string{d.word() + "/" + d.word() + ":latest", d.word()}},
				},
				Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
			},
		})
	}
	for i := range 1 + d.IntN(4) {
		c.Groups = append(c.Groups, &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s%d", d.name(), i), Namespace: d.word(), ResourceVersion: strconv.Itoa(2000 + i),
			Annotations: map[string]string{topology.AnnotationRequiredTopology: d.key(), d.key(): d.word()},
		}})
	}
	for i := range 4 + d.IntN(20) {
		c.add(d, i)
	}
	return c
}

// add adds a pod, and a claim for its ephemeral volume.
func (c *cluster) add(d draw, i int) {
	group := c.Groups[d.IntN(len(c.Groups))]
	key := d.key()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s%d", d.name(), i), Namespace: group.Namespace, ResourceVersion: strconv.Itoa(3000 + i),
			Labels: d.labels(),
		},
		Spec: corev1.PodSpec{
			NodeName:        c.Nodes[d.IntN(len(c.Nodes))].Name,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group.Name},
			NodeSelector:    d.labels(),
			Containers: []corev1.Container{
				{
					Name:  d.word(),
					Image: []string{d.word(), d.word() + "/" + d.word()}[d.IntN(2)],
					Args:  []string{d.name()},
				},
			},
			Tolerations: []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpEqual, Value: d.value(key)}},
			Volumes: []corev1.Volume{{
				Name: d.word(), VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
			}},
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{
						{MatchExpressions: []corev1.NodeSelectorRequirement{d.requirement()}},
						{MatchExpressions: []corev1.NodeSelectorRequirement{d.requirement(), d.requirement()}},
					},
				}},
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey: d.key(), LabelSelector: &metav1.LabelSelector{MatchLabels: d.labels()},
					}},
				},
			},
		},
	}
	pod.Labels[jobsetv1alpha2.ReplicatedJobNameKey] = []string{"launcher", "node", d.word() + strconv.Itoa(d.IntN(12))}[d.IntN(3)]
	c.Pods = append(c.Pods, pod)
	c.Claims = append(c.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name:            pod.Name + "-" + pod.Spec.Volumes[0].Name,
		Namespace:       pod.Namespace,
		ResourceVersion: strconv.Itoa(4000 + i),
	}})
}

// objects calls do with every object.
func (c *cluster) objects(do func(object any)) {
	for _, o := range c.Nodes {
		do(o)
	}
	for _, o := range c.Groups {
		do(o)
	}
	for _, o := range c.Pods {
		do(o)
	}
	for _, o := range c.Claims {
		do(o)
	}
}

func (c *cluster) clone(t *testing.T) *cluster {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	twin := &cluster{}
	if err := json.Unmarshal(text, twin); err != nil {
		t.Fatal(err)
	}
	return twin
}

// relations returns all facts that placement reads of a cluster and that depend on names, in resource versions.
func (c *cluster) relations(t *testing.T) []string {
	t.Helper()
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, pod := range c.Pods {
		for _, node := range c.Nodes {
			c.podOnNode(t, pod, node, say)
		}
		term := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range c.Pods {
			if selector.Matches(labels.Set(other.Labels)) {
				say("%s wants to be near %s", pod.ResourceVersion, other.ResourceVersion)
			}
		}
		for _, group := range c.Groups {
			if *pod.Spec.SchedulingGroup.PodGroupName == group.Name && pod.Namespace == group.Namespace {
				say("%s is of %s", pod.ResourceVersion, group.ResourceVersion)
			}
		}
		for _, claim := range c.Claims {
			if claim.Name == pod.Name+"-"+pod.Spec.Volumes[0].Name && claim.Namespace == pod.Namespace {
				say("%s has %s", pod.ResourceVersion, claim.ResourceVersion)
			}
		}
	}
	return append(found, c.orders()...)
}

func (c *cluster) podOnNode(t *testing.T, pod *corev1.Pod, node *corev1.Node, say func(string, ...any)) {
	t.Helper()
	if pod.Spec.NodeName == node.Name {
		say("%s is on %s", pod.ResourceVersion, node.ResourceVersion)
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil {
		t.Fatal(err)
	} else if matches {
		say("%s selects %s", pod.ResourceVersion, node.ResourceVersion)
	}
	if pod.Spec.Tolerations[0].ToleratesTaint(klog.Background(), &node.Spec.Taints[0], true) {
		say("%s tolerates %s", pod.ResourceVersion, node.ResourceVersion)
	}
	image := pod.Spec.Containers[0].Image
	if strings.LastIndex(image, ":") <= strings.LastIndex(image, "/") {
		image += ":latest" // as plugin ImageLocality does
	}
	for _, group := range c.Groups {
		if node.Labels[group.Annotations[topology.AnnotationRequiredTopology]] != "" {
			say("%s may be on %s", group.ResourceVersion, node.ResourceVersion)
		}
	}
	if slices.Contains(node.Status.Images[0].Names, image) {
		say("the image of %s is on %s", pod.ResourceVersion, node.ResourceVersion)
	}
	for _, other := range c.Nodes {
		key := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
		if node.Labels[key] != "" {
			say("%s: %s before %s by %d", pod.ResourceVersion, node.ResourceVersion, other.ResourceVersion,
				topology.CompareNatural(node.Labels[key], other.Labels[key]))
		}
	}
}

// orders are those by which ties are broken: nodes by name as people order them, members by replicated job and name.
func (c *cluster) orders() []string {
	nodes, pods := slices.Clone(c.Nodes), slices.Clone(c.Pods)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return topology.CompareNatural(a.Name, b.Name) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		key := jobsetv1alpha2.ReplicatedJobNameKey
		return cmp.Or(
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Labels[key], b.Labels[key]),
			cmp.Compare(a.Name, b.Name),
		)
	})
	var order []string
	for _, node := range nodes {
		order = append(order, "next: "+node.ResourceVersion)
	}
	for _, pod := range pods {
		order = append(order, "next: "+pod.ResourceVersion)
	}
	return order
}

func TestRename_PreservesWhatPlacementReads(t *testing.T) {
	for seed := range uint64(300) {
		original := draw{rand.New(rand.NewPCG(seed, 1))}.cluster()
		anonymous, again := original.clone(t), original.clone(t)
		census := anonymize.NewCensus()
		original.clone(t).objects(func(o any) { census.Add(o) })
		anonymous.objects(census.Names().Rename)
		again.objects(census.Names().Rename)

		want, got := original.relations(t), anonymous.relations(t)
		if len(want) != len(got) {
			t.Errorf("seed %d: %d relations became %d", seed, len(want), len(got))
		}
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Fatalf("seed %d: %q became %q", seed, want[i], got[i])
			}
		}
		text, err := json.Marshal(anonymous)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range planted() {
			if strings.Contains(string(text), word) {
				t.Errorf("seed %d: %s is still there", seed, word)
			}
		}
		if twin, err := json.Marshal(again); err != nil || string(twin) != string(text) {
			t.Errorf("seed %d: the same objects have other pseudonyms the second time, %v", seed, err)
		}
	}
}
