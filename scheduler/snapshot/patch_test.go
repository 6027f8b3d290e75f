package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Nodes are added, deleted, moved, tainted and filled; an index that followed all of it equals a new one.
func TestIndex_UpdatedEqualsNew(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var fleet []fwk.NodeInfo
		for i := range 60 {
			fleet = append(fleet, info(node(fmt.Sprint("n", i), fmt.Sprint("c", i%7))))
		}
		followed := snapshot.NewIndex(nil, "", nodehealth.Rules{})
		resources := []corev1.ResourceName{gpu}
		update(t, followed, fleet, resources)
		next := len(fleet)
		for step := range 40 {
			fleet = churn(t, random, slices.Clone(fleet), &next)
			got := update(t, followed, fleet, resources)
			want := update(t, snapshot.NewIndex(nil, "", nodehealth.Rules{}), fleet, resources)
			if text := difference(t, got, want, fleet); text != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, text)
			}
		}
	}
}

// churn changes one thing about the fleet.
func churn(t *testing.T, random *rand.Rand, fleet []fwk.NodeInfo, next *int) []fwk.NodeInfo {
	t.Helper()
	at := random.IntN(len(fleet))
	changed := fleet[at].Node().DeepCopy()
	switch random.IntN(9) {
	case 0:
		*next++
		return slices.Insert(fleet, at, info(node(fmt.Sprint("n", *next), fmt.Sprint("c", random.IntN(9)))))
	case 1:
		return slices.Delete(fleet, at, at+1)
	case 2:
		changed.Labels["nvidia.com/gpu.clique"] = fmt.Sprint("c", random.IntN(9))
	case 7:
		delete(changed.Labels, "nvidia.com/gpu.clique")
		changed.Labels["accelerator.topograph.run/domain"] = fmt.Sprint("d", random.IntN(5))
	case 8:
		delete(changed.Labels, "accelerator.topograph.run/domain")
	case 3:
		changed.Spec.Unschedulable = !changed.Spec.Unschedulable
	case 4:
		changed.Status.Allocatable = list("16", "8")
	case 5:
		changed.Labels["pool"] = strconv.Itoa(random.IntN(2))
	default:
		fleet[at] = fleet[at].Snapshot()
		fleet[at].AddPodInfo(podInfo(t, pod(fmt.Sprint("p", random.Uint64()), list("1", "1"))))
		return fleet
	}
	fleet[at] = info(changed)
	return fleet
}

func difference(t *testing.T, got, want snapshot.View, fleet []fwk.NodeInfo) string {
	t.Helper()
	asks := pod("asks", list("1", "1"))
	asks.Spec.NodeSelector = map[string]string{"pool": "1"}
	bars := func(v snapshot.View) []string {
		gang, err := v.Gang(&schedulingv1beta1.PodGroup{}, []*corev1.Pod{asks}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return gang.Shapes[0].Barred
	}
	barred, wantBarred := bars(got), bars(want)
	for _, n := range fleet {
		name := n.Node().Name
		g, there := got.Tree.Index(name)
		w, _ := want.Tree.Index(name)
		if !there || got.Infos[g] != n {
			return name + " is not there, or is an old one"
		}
		for level := range want.Tree.Levels() {
			a, inA := got.Tree.Domain(g, level)
			b, inB := want.Tree.Domain(w, level)
			if inA != inB || !slices.Equal(a.Path, b.Path) {
				return fmt.Sprint(name, " is in ", a, ", want ", b)
			}
		}
		if !slices.Equal(got.Free[g], want.Free[w]) || !slices.Equal(got.Total[g], want.Total[w]) {
			return fmt.Sprint(
				name,
				" has ",
				got.Free[g],
				" of ",
				got.Total[g],
				", want ",
				want.Free[w],
				" of ",
				want.Total[w],
			)
		}
		if barred[g] != wantBarred[w] {
			return fmt.Sprint(name, " is barred by ", barred[g], ", want ", wantBarred[w])
		}
	}
	for i, n := range got.Infos {
		if n == nil && (got.Free[i] != nil || got.Tree.Node(i) != "") {
			return fmt.Sprint("number ", i, " has no node but is there")
		}
	}
	return ""
}
