//go:build !race

package gangplacement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// losses is the number of nodes that each benchmark takes from the job.
const losses = 30

// replacing is a job of so many nodes in a fleet of a fifth more.
type replacing struct {
	*schedulertest.Cluster
	members []*corev1.Pod
	lower   map[string][]*corev1.Pod
}

func newReplacing(b *testing.B, ranks int, full bool) *replacing {
	b.Helper()
	nodes := schedulertest.Cliques(ranks*6/5/10, 10)
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = node.Name
	}
	r := &replacing{lower: make(map[string][]*corev1.Pod)}
	group, members := schedulertest.BoundGang("large", 10, names[:ranks]...)
	schedulertest.SetRunning(group, members, time.Hour, 0)
	r.members = members
	objects := []any{nodes, group, members}
	for i := ranks; full && i+5 <= len(names); i += 5 {
		name := fmt.Sprintf("low%d", i)
		lower, pods := schedulertest.RunningGang(name, "", names[i:i+5]...)
		r.lower[name] = pods
		objects = append(objects, lower, pods)
	}
	r.Cluster, _ = schedulertest.NewBenchmarkCluster(b, objects...)
	return r
}

// lose has a rank lose its node and returns the time from the creation of the rank that replaces it to its binding.
func (r *replacing) lose(b *testing.B, rank int) time.Duration {
	b.Helper()
	old := r.members[rank]
	node := old.Spec.NodeName
	if node == "" {
		node = r.NodeOf(old.Name)
	}
	r.UpdateNode(b, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	r.RemovePods(b, []*corev1.Pod{old})
	time.Sleep(200 * time.Millisecond) // its Job takes longer
	r.members[rank] = schedulertest.Recreated(old)
	began := time.Now()
	r.Create(b, r.members[rank])
	r.AwaitBound(b, r.members[rank:rank+1], time.Minute)
	took := time.Since(began)
	r.UpdateNode(b, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	return took
}

// The scheduler's share when a large job loses a node, from the replacement's creation to its binding, with free nodes
// and with a gang of lower priority that has to leave, by the size of the job: simulator/cmd/bench-recovery measures
// the whole control plane, as far as one machine has room.
func BenchmarkReplacement(b *testing.B) {
	for _, ranks := range []int{250, 2_500, 25_000} {
		for _, scene := range []string{"free", "full"} {
			full := scene == "full"
			b.Run(fmt.Sprintf("%s/%d", scene, ranks), func(b *testing.B) {
				for b.Loop() {
					r := newReplacing(b, ranks, full)
					r.lose(b, ranks-1) // a scheduler that has just begun considers no gang for a second
					if full {
						r.refill(b)
					}
					var all []time.Duration
					for i := range losses {
						all = append(all, r.lose(b, i*37%ranks))
						if full {
							r.refill(b)
						}
					}
					slices.Sort(all)
					b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "median-ms")
					b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "longest-ms")
					r.Stop()
				}
			})
		}
	}
}

// refill has the gang that left start again on the nodes that are free.
func (r *replacing) refill(b *testing.B) {
	b.Helper()
	for name, pods := range r.lower {
		_, err := r.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), schedulertest.Namespace, pods[0].Name)
		if err == nil {
			continue
		}
		for i, pod := range pods {
			pods[i] = schedulertest.Recreated(pod)
		}
		r.Create(b, pods)
		r.AwaitBound(b, pods, time.Minute)
		r.lower[name] = pods
	}
}
