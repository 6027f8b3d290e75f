package victims_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/scheduler/victims"
	"github.com/lockstep-project/lockstep/topology"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// now is when the scenes play.
func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// fleet is cliques of nodes of eight GPUs, gangs on them, and what is known of the gangs.
type fleet struct {
	nodes  []*corev1.Node
	pods   map[string][]*corev1.Pod // by node
	groups map[types.NamespacedName]*schedulingv1beta1.PodGroup
	// free is the number of nodes of each clique, from its last, on which nothing runs.
	next int
}

func newFleet(cliques, size int) *fleet {
	f := &fleet{pods: map[string][]*corev1.Pod{}, groups: map[types.NamespacedName]*schedulingv1beta1.PodGroup{}}
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), gpu: resource.MustParse("8"),
	}
	for c := range cliques {
		for n := range size {
			name := fmt.Sprintf("c%03d-n%03d", c, n)
			f.nodes = append(f.nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
					corev1.LabelHostname: name, topology.LabelClique: fmt.Sprint("fabric.", c),
				}},
				Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
			})
		}
	}
	return f
}

// run lets a gang run on the next nodes, since that long.
func (f *fleet) run(name string, nodes int, since time.Duration) {
	f.groups[types.NamespacedName{Namespace: "ns", Name: name}] = groupOf(name, nodes, 0)
	started := metav1.NewTime(now().Add(-since))
	for i := range nodes {
		node := f.nodes[f.next].Name
		f.next++
		pod := podOf(name, i, 0)
		pod.Labels, pod.Spec.NodeName = map[string]string{"gang": name}, node
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started}
		f.pods[node] = append(f.pods[node], pod)
	}
}

func groupOf(name string, size int, priority int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: schedulingv1beta1.PodGroupSpec{
			Priority: &priority,
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)},
			},
		},
	}
}

func podOf(group string, rank int, priority int32) *corev1.Pod {
	asks := corev1.ResourceList{gpu: resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s-%03d", group, rank)},
		Spec: corev1.PodSpec{
			Priority: &priority, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group},
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: asks}}},
		},
	}
}

// Get makes the fleet a lister of its groups.
func (f *fleet) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if group, ok := f.groups[types.NamespacedName{Namespace: namespace, Name: name}]; ok {
		return group, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "podgroups"}, name)
}

// asked is a gang of so many nodes in one clique, for which there is no room.
func (f *fleet) asked(tb testing.TB, size int) unplaced.Gang {
	tb.Helper()
	infos := make([]fwk.NodeInfo, len(f.nodes))
	for i, node := range f.nodes {
		info := framework.NewNodeInfo(f.pods[node.Name]...)
		info.SetNode(node)
		infos[i] = info
	}
	group := groupOf("high", size, 1000)
	group.Annotations = map[string]string{topology.AnnotationRequiredTopology: "clique"}
	var waiting []*corev1.Pod
	for i := range size {
		waiting = append(waiting, podOf("high", i, 1000))
	}
	view, err := snapshot.NewIndex(nil, "").Update(infos, snapshot.Resources(waiting))
	if err != nil {
		tb.Fatal(err)
	}
	gang, err := view.Gang(group, waiting, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return unplaced.Gang{
		Group: group, Waiting: waiting, View: view, Ledger: view.Ledger(nil), Gang: gang,
		Accelerators: []corev1.ResourceName{gpu},
	}
}

// leaving is who would leave for a gang.
type leaving struct {
	// Names are those of the victims; nil where nobody's departure helps. Lost is in accelerator-seconds.
	Names []string
	Lost  int64
}

func leave(
	asked unplaced.Gang, groups fwk.PodGroupLister, limits []*policyv1.PodDisruptionBudget, now time.Time,
) (leaving, error) {
	found, _, err := victims.Choose(asked, groups, limits, now)
	out := leaving{Lost: found.Lost}
	for _, u := range found.Victims {
		out.Names = append(out.Names, u.Name)
	}
	return out, err
}

// Of those in a domain that lose the same the least important leaves, whatever they are called: another one would take its place in its
// turn.
func TestTheLeastImportantOfEquals(t *testing.T) {
	f := newFleet(1, 4)
	f.run("a-kept", 2, time.Hour)
	f.run("b-low", 2, time.Hour)
	important := int32(5)
	f.groups[types.NamespacedName{Namespace: "ns", Name: "a-kept"}].Spec.Priority = &important
	got, err := leave(f.asked(t, 2), f, nil, now())
	if err != nil || !slices.Equal(got.Names, []string{"ns/b-low"}) {
		t.Errorf("%v leave, error %v", got.Names, err)
	}
}

// TestAgainstAllSets compares with a try of every set of gangs: fewest that budgets protect, then what is lost.
func TestAgainstAllSets(t *testing.T) {
	found := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		f := newFleet(3, 4)
		var names []string
		cost, protected := map[string]int64{}, map[string]bool{}
		var limits []*policyv1.PodDisruptionBudget
		for f.next < len(f.nodes) {
			size := min(1+random.IntN(3), len(f.nodes)-f.next)
			name := fmt.Sprintf("gang-%d", len(names))
			since := time.Duration(random.IntN(100)) * time.Minute
			names, cost[name] = append(names, name), int64(size)*8*int64(since/time.Second)
			f.run(name, size, since)
			if random.IntN(4) == 0 {
				protected[name] = true
				limits = append(limits, &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
					Spec: policyv1.PodDisruptionBudgetSpec{
						Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": name}},
					},
				})
			}
		}
		asked := f.asked(t, 1+random.IntN(4))
		got, err := leave(asked, f, limits, now())
		if err != nil {
			t.Fatal(err)
		}
		want, possible := least(t, f, asked, names, cost, protected)
		if !possible || len(got.Names) == 0 {
			t.Fatalf("seed %d: room was found %t, victims %v", seed, possible, got.Names)
		}
		found++
		broken := 0
		for _, name := range got.Names {
			if protected[name[len("ns/"):]] {
				broken++
			}
		}
		if broken != want.protected || got.Lost != want.lost {
			t.Errorf("seed %d: %v lose %d and break %d budgets; %+v would do", seed, got.Names, got.Lost, broken, want)
		}
	}
	t.Logf("%d scenes", found)
}

// A pod that only claims to be a DaemonSet's, of a group that nobody resolves, is preempted like any other.
func TestReturns_IsNotSaidByThePodAlone(t *testing.T) {
	for _, apiVersion := range []string{"", "evil.example/v1", "apps/v9"} {
		f := newFleet(2, 1)
		f.run("cheap", 1, time.Second)
		f.run("dear", 1, time.Hour)
		f.pods[f.nodes[0].Name][0].OwnerReferences = []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: "DaemonSet", Name: "logs", Controller: new(true)},
		}
		got, err := leave(f.asked(t, 1), f, nil, now())
		if err != nil || !slices.Equal(got.Names, []string{"ns/cheap"}) {
			t.Errorf("%q: %v leave (%v), want the cheap one", apiVersion, got.Names, err)
		}
	}
}

// A pod that comes back at once makes no room, however little it would cost.
func TestWhatComesBackStays(t *testing.T) {
	for name, keep := range map[string]func(*corev1.Pod){
		"a DaemonSet's": func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "logs", Controller: new(true)},
			}
		},
		"a static one": func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(2, 1)
			f.run("cheap", 1, time.Second)
			f.run("dear", 1, time.Hour)
			keep(f.pods[f.nodes[0].Name][0])
			got, err := leave(f.asked(t, 1), f, nil, now())
			if err != nil || !slices.Equal(got.Names, []string{"ns/dear"}) {
				t.Errorf("%v leave (%v), want the only one who makes room", got.Names, err)
			}
		})
	}
}

type toll struct {
	protected int
	lost      int64
	names     []string
}

// least tries every set.
func least(
	t *testing.T, f *fleet, asked unplaced.Gang, names []string, cost map[string]int64, protected map[string]bool,
) (best toll, possible bool) {
	t.Helper()
	for set := range 1 << len(names) {
		var now toll
		free := slices.Clone(asked.Ledger.Free)
		for i, name := range names {
			if set>>i&1 == 0 {
				continue
			}
			now.names, now.lost = append(now.names, name), now.lost+cost[name]
			if protected[name] {
				now.protected++
			}
			for _, pods := range f.pods {
				for _, pod := range pods {
					if *pod.Spec.SchedulingGroup.PodGroupName == name {
						at, _ := asked.View.Tree.Index(pod.Spec.NodeName)
						free[at] = slices.Clone(asked.View.Total[at]) // one pod has a node to itself
					}
				}
			}
		}
		if possible && (now.protected > best.protected || now.protected == best.protected && now.lost >= best.lost) {
			continue
		}
		ledger := asked.Ledger
		ledger.Free = free
		if _, short, err := topology.Place(ledger, asked.Gang); err != nil {
			t.Fatal(err)
		} else if short == nil {
			best, possible = now, true
		}
	}
	return best, possible
}

// BenchmarkVictims chooses among 700 gangs of 1 to 5 nodes on 2,000 nodes, for a gang that needs a clique of 16.
func BenchmarkVictims(b *testing.B) {
	for _, nodes := range []int{1008, 2000, 4000} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			f := newFleet(nodes/16, 16)
			gangs := 0
			for f.next < len(f.nodes) {
				f.run(fmt.Sprintf("gang-%04d", gangs), min(1+random.IntN(5), len(f.nodes)-f.next),
					time.Duration(random.IntN(600))*time.Minute)
				gangs++
			}
			asked := f.asked(b, 16)
			b.ReportMetric(float64(gangs), "gangs")
			for b.Loop() {
				if got, err := leave(asked, f, nil, now()); err != nil || len(got.Names) == 0 {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(float64(gangs), "gangs")
		})
	}
}
