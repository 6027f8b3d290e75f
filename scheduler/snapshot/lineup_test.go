package snapshot_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// asked are the pods of a gang by name, as an informer has them: each change makes a new object.
type asked map[string]*corev1.Pod

// change has a member arrive, leave, get a node or another shape.
func (a asked) change(random *rand.Rand, fleet []fwk.NodeInfo) {
	rank := random.IntN(12)
	name := fmt.Sprint("rank", rank)
	p := pod(name, list("1", strconv.Itoa(random.IntN(3))))
	p.Labels = map[string]string{"batch.kubernetes.io/job-completion-index": strconv.Itoa(rank)}
	switch random.IntN(5) {
	case 0:
		delete(a, name)
		return
	case 1:
		p.Spec.NodeSelector = map[string]string{"pool": "1"}
	case 2, 3:
		p.Spec.NodeName = fleet[random.IntN(len(fleet))].Node().Name
	}
	a[name] = p
}

// Members arrive, leave and get nodes, gangs take turns, nodes are added and deleted: a gang with retained state is
// read as a new one.
func TestView_GangIsReadAlikeWhateverWasAskedBefore(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		var fleet []fwk.NodeInfo
		for i := range 10 {
			fleet = append(fleet, info(node(fmt.Sprint("n", i), fmt.Sprint("c", i%3))))
		}
		gangs, index, next := make(map[string]asked), snapshot.NewIndex(nil, "", nodehealth.Rules{}), len(fleet)
		resources := []corev1.ResourceName{gpu}
		for step := range 300 {
			if random.IntN(10) == 0 {
				fleet = churn(t, random, slices.Clone(fleet), &next)
			}
			if step == 150 {
				resources = append(resources, "example.com/nic")
			}
			of := group(nil)
			of.Name = fmt.Sprint("g", random.IntN(20))
			if gangs[of.Name] == nil {
				gangs[of.Name] = make(asked)
			}
			gangs[of.Name].change(random, fleet)
			var waiting, running []*corev1.Pod
			for _, p := range slices.Collect(maps.Values(gangs[of.Name])) {
				if p.Spec.NodeName == "" || random.IntN(10) == 0 {
					waiting = append(waiting, p)
				} else {
					running = append(running, p)
				}
			}
			view := update(t, index, fleet, resources)
			got := gangOf(t, view, of, waiting, running, nil)
			of.Name = fmt.Sprint("never asked about before ", step)
			want := gangOf(t, view, of, waiting, running, nil)
			if want.Name = got.Name; !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: the gang is read as\n%+v\nand anew as\n%+v", seed, step, got, want)
			}
		}
	}
}
