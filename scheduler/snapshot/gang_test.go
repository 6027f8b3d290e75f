package snapshot_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

func group(annotations map[string]string) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", Annotations: annotations},
	}
}

func TestGang_RequiredLevel(t *testing.T) {
	native := group(nil)
	native.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
		Topology: []schedulingv1beta1.TopologyConstraint{{Key: "example.com/rack"}},
	}
	both := native.DeepCopy()
	both.Annotations = map[string]string{topology.AnnotationRequiredTopology: "block"}
	kueue := map[string]string{"kueue.x-k8s.io/podset-required-topology": "rack"}
	for want, g := range map[string]*schedulingv1beta1.PodGroup{
		"": group(nil), "example.com/rack": native, "block": both, "rack": group(kueue),
	} {
		if got := snapshot.Required(g); got != want {
			t.Errorf("required level of %v is %q, want %q", g.ObjectMeta, got, want)
		}
	}
}

func TestGang_RankOrder(t *testing.T) {
	ranked := func(name, job, jobIndex, index string) *corev1.Pod {
		p := pod(name, nil)
		p.Labels = map[string]string{
			"jobset.sigs.k8s.io/replicatedjob-name": job,
			"jobset.sigs.k8s.io/job-index":          jobIndex,
		}
		p.Annotations = map[string]string{"batch.kubernetes.io/job-completion-index": index}
		return p
	}
	labeled := pod("node-0-2-x", nil)
	labeled.Labels = map[string]string{
		"jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "0",
		"batch.kubernetes.io/job-completion-index": "2",
	}
	got := snapshot.InRankOrder([]*corev1.Pod{
		ranked("node-10-0", "node", "10", "0"), ranked("node-0-10", "node", "0", "10"), labeled,
		ranked("no-index-b", "node", "0", ""), ranked("no-index-a", "node", "0", ""),
		ranked("node-2-0", "node", "2", "0"), ranked("launcher", "launcher", "0", "0"),
	})
	var names []string
	for _, p := range got {
		names = append(names, p.Name)
	}
	want := []string{"launcher", "node-0-2-x", "node-0-10", "no-index-a", "no-index-b", "node-2-0", "node-10-0"}
	if !slices.Equal(names, want) {
		t.Errorf("order is %v, want %v", names, want)
	}
}

func TestGang_Shapes(t *testing.T) {
	view := update(
		t,
		snapshot.NewIndex(nil, "", nodehealth.Rules{}),
		infos([]*corev1.Node{node("a", "c1")}),
		[]corev1.ResourceName{gpu},
	)
	same, other, picky := pod("w1", list("1", "4")), pod("w2", list("1", "2")), pod("w3", list("1", "4"))
	picky.Spec.NodeSelector = map[string]string{"zone": "z"}
	gang := gangOf(t, view, group(nil), []*corev1.Pod{pod("w0", list("1", "4")), same, other, picky}, nil, nil)
	var shapes []int
	for _, m := range gang.Members {
		shapes = append(shapes, m.Shape)
	}
	if want := []int{0, 0, 1, 2}; !slices.Equal(shapes, want) {
		t.Errorf("shapes are %v, want %v", shapes, want)
	}
	if got, want := gang.Shapes[1].Demand, (topology.Capacity{1, 1000, 1 << 30, 0, 2}); !slices.Equal(got, want) {
		t.Errorf("demand is %v, want %v", got, want)
	}
	if gang.Name != "ns/g" || gang.Members[2].Name != "w2" {
		t.Errorf("names are %s, %s", gang.Name, gang.Members[2].Name)
	}
}

func TestGang_BarredNodes(t *testing.T) {
	plain, cordoned, tainted, soft, labeled := node(
		"n0",
		"c1",
	), node(
		"n1",
		"c1",
	), node(
		"n2",
		"c1",
	), node(
		"n3",
		"c1",
	), node(
		"n4",
		"c2",
	)
	cordoned.Spec.Unschedulable = true
	tainted.Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
	soft.Spec.Taints = []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}}
	labeled.Labels["zone"] = "z"
	nodes := []*corev1.Node{plain, cordoned, tainted, soft, labeled}

	tolerant := pod("tolerant", nil)
	tolerant.Spec.Tolerations = []corev1.Toleration{
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists},
		{Key: "maintenance", Operator: corev1.TolerationOpExists},
	}
	selective := tolerant.DeepCopy()
	selective.Spec.NodeSelector = map[string]string{"zone": "z"}
	affine := tolerant.DeepCopy()
	affine.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{
					MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "zone", Operator: corev1.NodeSelectorOpDoesNotExist},
					},
				},
			},
		},
	}}
	named := tolerant.DeepCopy()
	named.Spec.NodeName = "n0"

	const affinity, elsewhere = "node selector or affinity", "another node is named by the pod"
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"plain pod":     {pod("p", nil), []string{"", "cordoned", "untolerated taint maintenance", "", ""}},
		"tolerant":      {tolerant, []string{"", "", "", "", ""}},
		"node selector": {selective, []string{affinity, affinity, affinity, affinity, ""}},
		"node affinity": {affine, []string{"", "", "", "", affinity}},
		"node name":     {named, []string{"", elsewhere, elsewhere, elsewhere, elsewhere}},
	} {
		t.Run(name, func(t *testing.T) {
			view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos(nodes), nil)
			gang := gangOf(t, view, group(nil), []*corev1.Pod{test.pod}, nil, nil)
			if got := gang.Shapes[0].Barred; !slices.Equal(got, test.want) {
				t.Errorf("barred by %q, want %q", got, test.want)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos([]*corev1.Node{plain, soft}), nil)
		if got := gangOf(t, view, group(nil), []*corev1.Pod{pod("p", nil)}, nil, nil).Shapes[0].Barred; got != nil {
			t.Errorf("barred by %q, want nil", got)
		}
	})
}

func gangOf(
	t *testing.T, view snapshot.View, group *schedulingv1beta1.PodGroup, waiting, running []*corev1.Pod,
	refused map[string]string,
) topology.Gang {
	t.Helper()
	gang, err := view.Gang(group, waiting, running, refused)
	if err != nil {
		t.Fatal(err)
	}
	return gang
}

// Members that run are placed, of the same shape as those that wait, and in rank order among them.
func TestGang_RunningMembersArePlaced(t *testing.T) {
	nodes := []*corev1.Node{node("n0", "c1"), node("n1", "c1"), node("n2", "c2"), node("n3", "")}
	at := func(name, node string) *corev1.Pod {
		p := pod(name, nil)
		p.Spec.NodeName = node
		return p
	}
	view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos(nodes), nil)
	refused := map[string]string{"n1": "refused", "gone": "refused"}
	running := []*corev1.Pod{at("w2", "n2"), at("w0", "n0"), at("w3", "lost")}
	gang := gangOf(t, view, group(nil), []*corev1.Pod{pod("w1", nil)}, running, refused)
	where := func(name string) int { i, _ := view.Tree.Index(name); return i }
	want := []topology.Member{
		{Name: "w0", Placed: true, Node: where("n0")}, {Name: "w1"}, {Name: "w2", Placed: true, Node: where("n2")},
	}
	if !slices.Equal(gang.Members, want) {
		t.Errorf("members are %+v, want %+v", gang.Members, want)
	}
	if got := gang.Shapes[0].Barred; len(gang.Shapes) != 1 || got[where("n1")] != "refused" || got[where("n3")] != "" {
		t.Errorf("shapes are %+v", gang.Shapes)
	}
}

func TestGang_ReadsAnnotations(t *testing.T) {
	view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos([]*corev1.Node{node("n0", "c1")}), nil)
	read := func(annotations map[string]string) topology.Gang {
		t.Helper()
		g := gangOf(t, view, group(annotations), []*corev1.Pod{pod("w", nil)}, nil, nil)
		g.Name, g.Members, g.Shapes = "", nil, nil
		return g
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        topology.Gang
	}{
		"none": {nil, topology.Gang{Spares: topology.Spares{Level: "clique"}}},
		"all": {
			map[string]string{
				topology.AnnotationRequiredTopology: "block", topology.AnnotationPreferredTopology: "rack",
				topology.AnnotationSegmentSize: "4", topology.AnnotationSegmentTopology: "clique",
				topology.AnnotationSegmentEqual: "true", topology.AnnotationSpreadMax: "2",
				topology.AnnotationSpreadTopology: "rack", topology.AnnotationSpares: "1",
				topology.AnnotationMaxPerNode: "3", topology.AnnotationCommunication: "all-to-all",
			},
			topology.Gang{
				Required: "block", Preferred: "rack", Segment: topology.Segment{Size: 4, Level: "clique", Equal: true},
				Spread: topology.Spread{Max: 2, Level: "rack"}, Spares: topology.Spares{Nodes: 1, Level: "clique"},
				PerNode: 3, Communication: topology.AllToAll,
			},
		},
		"Kueue's": {
			map[string]string{
				"kueue.x-k8s.io/podset-required-topology": "block", "kueue.x-k8s.io/podset-preferred-topology": "rack",
				"kueue.x-k8s.io/podset-slice-required-topology": "clique", "kueue.x-k8s.io/podset-slice-size": "2",
			},
			topology.Gang{
				Required: "block", Preferred: "rack", Segment: topology.Segment{Size: 2, Level: "clique", Equal: true},
				Spares: topology.Spares{Level: "clique"},
			},
		},
		"spares of the required level": {
			map[string]string{topology.AnnotationRequiredTopology: "block", topology.AnnotationSpares: "2"},
			topology.Gang{Required: "block", Spares: topology.Spares{Nodes: 2, Level: "block"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Resources = []string{"pods", "cpu", "memory", "ephemeral-storage"} // those of every view
			if diff := cmp.Diff(c.want, read(c.annotations)); diff != "" {
				t.Errorf("wishes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGang_UnreadableAnnotationsAreNamed(t *testing.T) {
	view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos([]*corev1.Node{node("n0", "c1")}), nil)
	for key, value := range map[string]string{
		topology.AnnotationSegmentSize: "four", topology.AnnotationSegmentEqual: "perhaps",
		topology.AnnotationSpreadMax: "0", topology.AnnotationSpares: "-1", topology.AnnotationMaxPerNode: "1.5",
		topology.AnnotationCommunication: "tree", "kueue.x-k8s.io/podset-slice-size": "",
	} {
		_, err := view.Gang(group(map[string]string{key: value}), []*corev1.Pod{pod("w", nil)}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), strconv.Quote(value)) {
			t.Errorf("%s=%q: %v", key, value, err)
		}
	}
}

// Products of two numbers must fit in 64 bits.
func TestGang_NumbersAreBounded(t *testing.T) {
	view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos([]*corev1.Node{node("n0", "c1")}), nil)
	for value, fits := range map[string]bool{"16777216": true, "16777217": false, "9223372036854775807": false} {
		wish := map[string]string{topology.AnnotationMaxPerNode: value}
		_, err := view.Gang(group(wish), []*corev1.Pod{pod("w", nil)}, nil, nil)
		if (err == nil) != fits {
			t.Errorf("%s: error %v", value, err)
		}
	}
}

// Every kind of member is compared with every node while other gangs wait.
func TestGang_TooManyKindsAreRefused(t *testing.T) {
	view := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), infos([]*corev1.Node{node("n0", "c1")}), nil)
	var pods []*corev1.Pod
	for i := range 513 {
		p := pod(fmt.Sprint("w", i), nil)
		p.Spec.NodeSelector = map[string]string{"slot": strconv.Itoa(i)}
		pods = append(pods, p)
	}
	if _, err := view.Gang(group(nil), pods[:512], nil, nil); err != nil {
		t.Error(err)
	}
	if _, err := view.Gang(group(nil), pods, nil, nil); err == nil || !strings.Contains(err.Error(), "512 kinds") {
		t.Errorf("a gang of 513 kinds: %v", err)
	}
}
