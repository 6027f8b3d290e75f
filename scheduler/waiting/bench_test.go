package waiting_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// A later gang is evaluated whose best place is in the place of the head, after one pod of the fleet was replaced by
// another. Twelve pods run on each node; gangs of 64 have known ends, every fourth has none.
func BenchmarkQueue_TouchesTheHeadsPlace(b *testing.B) {
	for _, nodes := range []int{1_000, 4_000, 10_000, 16_000} {
		b.Run(fmt.Sprint(nodes, "nodes"), func(b *testing.B) { benchmarkTouch(b, nodes) })
	}
}

func benchmarkTouch(b *testing.B, nodes int) {
	b.Helper()
	const perNode, perGang, perClique = 12, 64, 18
	f := newFleet(b, nodes, perClique)
	for first := 0; first < nodes; first += perGang {
		var on []int
		for n := first; n < min(first+perGang, nodes); n++ {
			on = append(on, n)
		}
		for k := range perNode {
			gpus, left := "1", time.Duration(first%7+1)*time.Hour
			if k >= 7 { // one GPU of each node is free
				gpus = "0"
			}
			if k%4 == 3 {
				left = 0
			}
			f.runs(fmt.Sprintf("runs-%d-%d", first, k), gpus, left, on...)
		}
	}
	head := f.group("head", perClique)
	head.Annotations[topology.AnnotationRequiredTopology] = "clique"
	if out := f.asks(head, "8"); out.Lease == nil {
		b.Fatalf("the head has no lease: %+v", out)
	}
	var clique string
	for name := range f.queue.Leases()[0].Room {
		for _, n := range f.nodes {
			if n.Node().Name == name {
				clique = n.Node().Labels[topology.LabelClique]
			}
		}
	}
	later := f.group("later", 4)
	var members []*corev1.Pod
	for rank := range 4 {
		p := pod(fmt.Sprint("later-", rank), "1")
		p.Spec.NodeSelector = map[string]string{topology.LabelClique: clique}
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &later.Name}
		members = append(members, p)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.clock.Step(time.Second)
		info, _ := f.nodes[i*37%nodes].(*framework.NodeInfo)
		old := info.GetPods()[0].GetPod()
		fresh := old.DeepCopy()
		fresh.UID += "x"
		if err := info.RemovePod(klog.Background(), old); err != nil {
			b.Fatal(err)
		}
		f.queue.Left(old)
		info.AddPod(fresh)
		x, err := f.reader.Read(
			b.Context(),
			waiting.Asked{Group: later, Waiting: members, Nodes: f.nodes, Now: f.clock.Now()},
		)
		if err != nil {
			b.Fatal(err)
		}
		f.queue.Release("team/later")
		out := f.queue.Turn(x)
		if out.Deferred {
			f.asks(head, "8")
			out = f.queue.Turn(x)
		}
		if out.Wait.Cause != contention.OtherLease {
			b.Fatalf("it does not wait for the head: %+v", out)
		}
	}
}
