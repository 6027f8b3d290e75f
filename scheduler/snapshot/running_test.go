package snapshot_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// groups is a lister of PodGroups.
type groups map[string]*schedulingv1beta1.PodGroup

func (g groups) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	if group := g[name]; group != nil {
		return group, nil
	}
	return nil, errors.New("there is none of that name")
}

// naive returns the running units, counted anew: each unit with its pods by node and name.
func naive(view snapshot.View, of groups) []string {
	units := make(map[string][]string)
	for node, info := range view.Infos {
		if info == nil {
			continue
		}
		for _, pod := range info.GetPods() {
			p := pod.GetPod()
			name := p.Namespace + "/" + p.Name + "/"
			if key, member := snapshot.GroupOf(p); member {
				if g := of[key.Name]; g != nil && g.Spec.SchedulingPolicy.Gang != nil {
					name = key.String()
				}
			}
			units[name] = append(units[name], fmt.Sprintf("%04d %s", node, p.Name))
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(units)) {
		out = append(out, name+": "+strings.Join(slices.Sorted(slices.Values(units[name])), ", "))
	}
	return out
}

func told(view snapshot.View, of groups) []string {
	var out []string
	for _, u := range view.Units(of) {
		var pods []string
		for i, p := range u.Pods {
			pods = append(pods, fmt.Sprintf("%04d %s", u.Holds[i].Node, p.Name))
		}
		out = append(out, u.Name+": "+strings.Join(pods, ", "))
	}
	return out
}

// Pods are created and deleted, nodes too, groups become gangs and are deleted: the units that are followed are those
// that are counted anew.
func TestView_UnitsFollowThePods(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		var fleet []fwk.NodeInfo
		for i := range 20 {
			fleet = append(fleet, info(node(fmt.Sprint("n", i), fmt.Sprint("c", i%3))))
		}
		of, index, next := make(groups), snapshot.NewIndex(nil, "", nodehealth.Rules{}), len(fleet)
		resources := []corev1.ResourceName{gpu}
		for step := range 200 {
			if random.IntN(10) == 0 {
				fleet = churn(t, random, slices.Clone(fleet), &next)
			}
			at := random.IntN(len(fleet))
			fleet = slices.Clone(fleet)
			fleet[at] = fleet[at].Snapshot()
			if pods := fleet[at].GetPods(); len(pods) > 0 && random.IntN(3) == 0 {
				remove(t, fleet[at], pods[random.IntN(len(pods))].GetPod())
			} else {
				p := pod(fmt.Sprint("p", seed, "-", step), list("1", "1"))
				p.UID = types.UID(p.Name)
				p.CreationTimestamp = metav1.Unix(random.Int64N(1000), 0)
				p.Spec.PriorityClassName = []string{"", "gold", "silver"}[random.IntN(3)]
				p.Spec.TerminationGracePeriodSeconds = new(random.Int64N(60))
				if random.IntN(2) == 0 {
					p.DeletionTimestamp = new(metav1.Unix(random.Int64N(1000), 0))
				}
				if name := fmt.Sprint("g", random.IntN(5)); random.IntN(2) == 0 {
					p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
				}
				fleet[at].AddPodInfo(podInfo(t, p))
			}
			switch name := fmt.Sprint("g", random.IntN(5)); random.IntN(6) {
			case 0:
				g := group(nil)
				g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
				of[name] = g
			case 1:
				delete(of, name)
			}
			if step == 100 {
				resources = append(resources, corev1.ResourceName("example.com/nic"))
			}
			view := update(t, index, fleet, resources)
			if random.IntN(2) == 0 {
				continue
			}
			if want, got := naive(view, of), told(view, of); !slices.Equal(got, want) {
				t.Fatalf(
					"seed %d, step %d:\n%s\nwant\n%s",
					seed,
					step,
					strings.Join(got, "\n"),
					strings.Join(want, "\n"),
				)
			}
			demands(t, view, of)
			if random.IntN(2) == 0 {
				contenders(t, view, of)
			}
		}
	}
}

// contenders checks that the units for package contention are those that run.
func contenders(t *testing.T, view snapshot.View, of groups) {
	t.Helper()
	reading := snapshot.Reading{
		Accelerators: []corev1.ResourceName{gpu}, Protected: func(class string) bool { return class == "gold" },
	}
	got, want := view.Contenders(of, reading), view.Units(of)
	if got.Len() != len(want) {
		t.Fatalf("%d units are read, %d run", got.Len(), len(want))
	}
	for _, u := range want {
		read := got.Get(contention.ID(u.Name))
		anew := u.Part(u.Pods).Contender(reading)
		if !reflect.DeepEqual(read, anew) {
			t.Fatalf("%s is read as %+v, and anew as %+v", u.Name, read, anew)
		}
	}
}

// demands checks that the holds of units are counted in the view's resources.
func demands(t *testing.T, view snapshot.View, of groups) {
	t.Helper()
	for _, u := range view.Units(of) {
		for _, h := range u.Holds {
			if len(h.Demand) != len(view.Resources()) {
				t.Fatalf("%s holds %v of %v", u.Name, h.Demand, view.Resources())
			}
		}
	}
}

func remove(t *testing.T, info fwk.NodeInfo, p *corev1.Pod) {
	t.Helper()
	of, ok := info.(interface {
		RemovePod(logger klog.Logger, pod *corev1.Pod) error
	})
	if !ok {
		t.Fatalf("no pod can be removed from a %T", info)
	}
	if err := of.RemovePod(klog.Background(), p); err != nil {
		t.Fatal(err)
	}
}

// One of twelve pods on each node ends, another one is created, and the units are read: the cost of a waiting gang
// whenever something ends.
func BenchmarkUnits(b *testing.B) {
	for _, nodes := range []int{1_000, 4_000, 16_000} {
		b.Run(fmt.Sprint(nodes, "nodes"), func(b *testing.B) { benchmarkUnits(b, nodes) })
	}
}

func benchmarkUnits(b *testing.B, nodes int) {
	b.Helper()
	const perNode, perGang = 12, 64
	of, fleet := make(groups), make([]fwk.NodeInfo, nodes)
	for i := range fleet {
		var pods []*corev1.Pod
		for k := range perNode {
			p := pod(fmt.Sprintf("p%d-%d", i, k), list("1", "1"))
			p.UID = types.UID(p.Name)
			name := fmt.Sprint("g", (i*perNode+k)/perGang)
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
			if of[name] == nil {
				of[name] = group(nil)
				of[name].Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
			}
			pods = append(pods, p)
		}
		fleet[i] = info(node(fmt.Sprint("n", i), fmt.Sprint("c", i/18)), pods...)
	}
	index := snapshot.NewIndex(nil, "", nodehealth.Rules{})
	view, err := index.Update(fleet, []corev1.ResourceName{gpu})
	if err != nil {
		b.Fatal(err)
	}
	view.Units(of)
	i := 0
	for b.Loop() {
		pods := podsOf(fleet[i%nodes])
		pods[0] = pods[0].DeepCopy() // one was created, one left
		fleet[i%nodes] = info(fleet[i%nodes].Node(), pods...)
		if view, err = index.Update(fleet, nil); err != nil {
			b.Fatal(err)
		}
		if units := view.Units(of); len(units) == 0 {
			b.Fatal("nothing runs")
		}
		i += 7
	}
}

func podsOf(info fwk.NodeInfo) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, p := range info.GetPods() {
		pods = append(pods, p.GetPod())
	}
	return pods
}
