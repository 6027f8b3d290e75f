package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-project/lockstep/topology"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// Two schedulers that do not know of each other give a node away twice. The kubelet refuses the second pod, its gang is
// started anew, and in the end every gang has run whole, in one clique.
func TestStockScheduler_RaceEndsWithWholeGangs(t *testing.T) {
	r := newRace(t, 50)
	defer r.clear(t)
	const patience = 2 * time.Minute // between two ends of gangs, for a loaded machine; the time is no part of the promise
	end, ran := time.Now().Add(patience), 0
	for tick := time.Tick(20 * time.Millisecond); len(r.coming)+len(r.gangs) > 0; {
		if len(r.coming) == 0 && r.lost() == 0 {
			r.expect(time.Since(r.begin) + betweenGangs) // they have not met yet
		}
		select {
		case event, ok := <-r.changes:
			if !ok {
				t.Fatal("the watch of the pods ended")
			}
			r.see(t, event)
		case <-tick:
			r.goOn(t)
		}
		if r.ran > ran {
			end, ran = time.Now().Add(patience), r.ran
		}
		if time.Now().After(end) {
			t.Fatalf("not all gangs have run:\n%s", r.progress())
		}
	}
	t.Logf("%d gangs have run beside %d pods of the stock scheduler; the kubelets refused %d of ours, %d of those",
		r.ran, r.made, r.refused[ours], r.refused[stock])
}

// The two schedulers.
const (
	ours  = "lockstep-scheduler"
	stock = "default-scheduler"
)

// race is the test's share in the cluster: the kubelets' admission, the controller of the gangs and the users.
type race struct {
	namespace string
	random    *rand.Rand
	changes   <-chan watch.Event
	begin     time.Time
	coming    []*team
	gangs     map[string]*team
	// free are the GPUs of every node that no admitted pod has; cliques the cliques of the nodes.
	free    map[string]int64
	cliques map[string]string
	// pods are the bound pods that exist, by UID.
	pods    map[types.UID]*bound
	refused map[string]int
	// refusers are the nodes whose kubelets refused a pod.
	refusers sets.Set[string]
	// singles are the pods for the stock scheduler, with the instant at which each ends.
	singles map[string]time.Time
	made    int
	// expected counts the gangs that were or will be submitted, ran those that have ended.
	expected int
	ran      int
}

func newRace(t *testing.T, gangs int) *race {
	t.Helper()
	r := &race{
		namespace: namespaceOf(t), random: rand.New(rand.NewPCG(50, 1)), gangs: make(map[string]*team),
		free: make(map[string]int64), cliques: make(map[string]string), pods: make(map[types.UID]*bound),
		refused: make(map[string]int), refusers: sets.New[string](), singles: make(map[string]time.Time),
	}
	for i := range gangs {
		r.expect(time.Duration(i) * betweenGangs)
	}
	for _, node := range machines.Nodes {
		has := node.Status.Allocatable[gpu]
		r.free[node.Name], r.cliques[node.Name] = has.Value(), node.Labels[topology.LabelClique]
	}
	if _, err := shared.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	changes, err := shared.Client.CoreV1().Pods(r.namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(changes.Stop)
	r.changes, r.begin = changes.ResultChan(), time.Now()
	return r
}

// expect has one more gang submitted, at a time since the begin.
func (r *race) expect(at time.Duration) {
	r.coming = append(r.coming, &team{
		name: fmt.Sprint("gang-", r.expected), size: 2 + r.random.IntN(9), at: at,
		runs: time.Duration(500+r.random.IntN(1000)) * time.Millisecond,
	})
	r.expected++
}

// lost returns the number of refused pods.
func (r *race) lost() int { return r.refused[ours] + r.refused[stock] }

func (r *race) inOneClique(t *testing.T, g *team) {
	t.Helper()
	var cliques []string
	for _, node := range g.admitted {
		cliques = append(cliques, r.cliques[node])
	}
	slices.Sort(cliques)
	if cliques = slices.Compact(cliques); len(cliques) != 1 || cliques[0] == "" {
		t.Errorf("%s is in the cliques %q, want one: %v", g.name, cliques, g.admitted)
	}
}

// ranTogether checks the API server's objects of a gang that has run: all members run, each on a tray of its own.
func (r *race) ranTogether(t *testing.T, g *team) {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: fmt.Sprintf("gang=%s,try=%d", g.name, g.tries),
	})
	if err != nil {
		t.Fatal(err)
	}
	trays := map[string]bool{}
	for _, pod := range pods.Items {
		if trays[pod.Spec.NodeName] = true; pod.Status.Phase != corev1.PodRunning {
			t.Errorf("%s has run, but its member %s is %s on %q", g.name, pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	if len(pods.Items) != g.size || len(trays) != g.size {
		t.Errorf("%s of %d members has run as %d pods on %d trays", g.name, g.size, len(pods.Items), len(trays))
	}
}

// clear leaves the machines to the next test.
func (r *race) clear(t *testing.T) {
	t.Helper()
	for node := range r.refusers {
		reports(t, node)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	all := shared.Client.CoreV1().Pods(r.namespace)
	for ; ; time.Sleep(50 * time.Millisecond) {
		if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		left, err := all.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(left.Items) == 0 {
			return
		}
	}
}

// progress describes the gangs that have not run.
func (r *race) progress() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d have run, %d are to come; %v pods were refused\n", r.ran, len(r.coming), r.refused)
	for name, g := range r.gangs {
		fmt.Fprintf(&out, "%s: %d of %d members run in try %d, whole %v\n",
			name, len(g.admitted), g.size, g.tries, !g.whole.IsZero())
	}
	return out.String()
}
