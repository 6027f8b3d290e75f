package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
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
			t.Fatalf("not all gangs have run:\n%s", r.story())
		}
	}
	t.Logf("%d gangs have run beside %d pods of the stock scheduler; the kubelets refused %d of ours, %d of those",
		r.ran, r.made, r.refused[ours], r.refused[stock])
}

// betweenGangs is the time between the submissions of two gangs.
const betweenGangs = 200 * time.Millisecond

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

// bound is the kubelet's record of a pod.
type bound struct {
	node     string
	gpus     int64
	admitted bool
}

// team is a gang and the state of its controller.
type team struct {
	name  string
	size  int
	at    time.Duration
	runs  time.Duration
	tries int
	// admitted are the nodes of the members that run, by pod; broken is set when one was refused.
	admitted map[string]string
	broken   bool
	whole    time.Time
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

// see is the kubelets' admission: of the pods that are bound to a node, in this order, those are refused for which there
// are not enough GPUs left.
func (r *race) see(t *testing.T, event watch.Event) {
	t.Helper()
	pod, ok := event.Object.(*corev1.Pod)
	switch {
	case !ok:
		t.Fatalf("the watch of the pods says %v", event.Object)
	case event.Type == watch.Deleted:
		r.gone(pod)
		return
	case pod.Spec.NodeName == "":
		return
	}
	b := r.pods[pod.UID]
	if b == nil {
		asked := pod.Spec.Containers[0].Resources.Requests[gpu]
		b = &bound{node: pod.Spec.NodeName, gpus: asked.Value()}
		if b.admitted = b.gpus <= r.free[b.node]; b.admitted {
			r.free[b.node] -= b.gpus
		} else {
			r.refused[pod.Spec.SchedulerName]++
			r.refusers.Insert(b.node)
		}
		r.pods[pod.UID] = b
	}
	if pod.Status.Phase != corev1.PodRunning { // KWOK has not played its part yet, or we have
		return
	}
	if !b.admitted {
		r.refuse(t, pod)
	}
	r.tell(t, pod, b)
}

// tell notifies the pod's owner that it runs or was refused.
func (r *race) tell(t *testing.T, pod *corev1.Pod, b *bound) {
	t.Helper()
	if pod.Spec.SchedulingGroup == nil {
		if _, known := r.singles[pod.Name]; known && !b.admitted {
			r.singles[pod.Name] = time.Now()
		} else if r.singles[pod.Name].IsZero() {
			r.singles[pod.Name] = time.Now().Add(time.Duration(300+r.random.IntN(1200)) * time.Millisecond)
		}
		return
	}
	g := r.gangs[*pod.Spec.SchedulingGroup.PodGroupName]
	if g == nil || pod.Labels["try"] != strconv.Itoa(g.tries) {
		return // of an earlier try, or of a gang that has run
	}
	if !b.admitted {
		g.broken = true
		return
	}
	g.admitted[pod.Name] = b.node
	if len(g.admitted) == g.size && g.whole.IsZero() {
		g.whole = time.Now()
		r.inOneClique(t, g)
	}
}

func (r *race) gone(pod *corev1.Pod) {
	if b := r.pods[pod.UID]; b != nil && b.admitted {
		r.free[b.node] += b.gpus
	}
	delete(r.pods, pod.UID)
}

// refuse rejects a pod without a GPU, as a kubelet does.
func (r *race) refuse(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	patch := []byte(
		`{"status":{"phase":"Failed","reason":"OutOfnvidia.com/gpu","message":"Pod was rejected: Node didn't have enough resource: nvidia.com/gpu"}}`,
	)
	_, err := shared.Client.CoreV1().Pods(r.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

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

// goOn plays the users, who submit gangs and single pods, and the gangs' controller.
func (r *race) goOn(t *testing.T) {
	t.Helper()
	for len(r.coming) > 0 && time.Since(r.begin) > r.coming[0].at {
		g := r.coming[0]
		r.coming, r.gangs[g.name] = r.coming[1:], g
		r.group(t, g)
		r.members(t, g)
	}
	if len(r.coming) > 0 && len(r.singles) < 30 && r.random.IntN(2) == 0 {
		r.single(t)
	}
	for name, end := range r.singles {
		if !end.IsZero() && time.Now().After(end) {
			r.remove(t, name)
			delete(r.singles, name)
		}
	}
	for _, g := range r.gangs {
		switch {
		case g.broken: // as the restart of a JobSet does
			r.removeMembers(t, g)
			r.members(t, g)
		case !g.whole.IsZero() && time.Since(g.whole) > g.runs:
			r.ranTogether(t, g)
			r.removeMembers(t, g)
			r.ran++
			delete(r.gangs, g.name)
			if err := shared.Client.SchedulingV1beta1().PodGroups(r.namespace).
				Delete(t.Context(), g.name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
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

func (r *race) group(t *testing.T, g *team) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: g.name, Annotations: map[string]string{topology.AnnotationRequiredTopology: "clique"},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(g.size)},
		}},
	}
	if _, err := shared.Client.SchedulingV1beta1().PodGroups(r.namespace).
		Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// members makes the pods of the gang's next try.
func (r *race) members(t *testing.T, g *team) {
	t.Helper()
	g.tries++
	g.admitted, g.broken, g.whole = make(map[string]string), false, time.Time{}
	for rank := range g.size {
		pod := r.pod(fmt.Sprintf("%s-try-%d-%d", g.name, g.tries, rank), ours)
		pod.Labels = map[string]string{
			"batch.kubernetes.io/job-completion-index": strconv.Itoa(
				rank,
			),
			"gang": g.name,
			"try":  strconv.Itoa(g.tries),
		}
		gangapi.Join(&pod.ObjectMeta, &pod.Spec, g.name)
		r.create(t, pod)
	}
}

func (r *race) single(t *testing.T) {
	t.Helper()
	r.made++
	pod := r.pod(fmt.Sprint("single-", r.made), stock)
	r.singles[pod.Name] = time.Time{}
	r.create(t, pod)
}

// pod asks for a whole tray.
func (r *race) pod(name, scheduler string) *corev1.Pod {
	asks := corev1.ResourceList{gpu: resource.MustParse("4"), corev1.ResourceCPU: resource.MustParse("1")}
	none := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, TerminationGracePeriodSeconds: &none, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "train", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
			}},
		},
	}
}

func (r *race) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	_, err := shared.Client.CoreV1().Pods(r.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *race) remove(t *testing.T, name string) {
	t.Helper()
	err := shared.Client.CoreV1().Pods(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func (r *race) removeMembers(t *testing.T, g *team) {
	t.Helper()
	for rank := range g.size {
		r.remove(t, fmt.Sprintf("%s-try-%d-%d", g.name, g.tries, rank))
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

// story describes the progress of the gangs that have not run.
func (r *race) story() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d have run, %d are to come; %v pods were refused\n", r.ran, len(r.coming), r.refused)
	for name, g := range r.gangs {
		fmt.Fprintf(&out, "%s: %d of %d members run in try %d, whole %v\n",
			name, len(g.admitted), g.size, g.tries, !g.whole.IsZero())
	}
	return out.String()
}
