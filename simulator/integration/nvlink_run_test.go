package integration_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/topology"
)

var long = flag.Bool("long", false, "run the tests that take minutes")

// 200 gangs that require NVLink share four racks of 18 trays, while nodes are lost, drained and return, pods are
// evicted, and nodes lose their cliques. No gang is ever in two cliques, no two channels are ever on one node, no gang
// starts on a node of another domain, and all gangs end.
func TestNVLink_NoGangSpansTwoCliques(t *testing.T) {
	if !*long {
		t.Skip("it takes minutes: run it with -long")
	}
	r := newNVLinkRun(t, 200)
	defer r.restoreAll(t)
	end := time.Now().Add(20 * time.Minute)
	for tick := time.Tick(100 * time.Millisecond); r.left > 0; <-tick {
		r.submit(t)
		r.harm(t)
		r.restore(t)
		r.invariants.judge(t)
		r.collect(t)
		if time.Now().After(end) {
			t.Errorf("%d gangs have not ended", r.left)
			break
		}
		if len(r.invariants.faults) > 0 {
			break
		}
	}
	r.report(t)
}

// nvlinkRun is the users and the bad luck of one run.
type nvlinkRun struct {
	namespace  string
	random     *rand.Rand
	invariants *invariants
	begin      time.Time
	total      int
	// coming is the number of submitted gangs, left that of those that have not ended.
	coming, left int
	collected    time.Time
	// nextHarm is the number of started gangs at which the next harm is due.
	nextHarm int
	harms    map[string]int
	// broken are the nodes that are to be mended, when, and how.
	broken map[string]repair
}

type repair struct {
	at time.Time
	do func(t *testing.T)
}

// outstanding is the number of gangs that wait or run at a time.
const outstanding = 16

func newNVLinkRun(t *testing.T, gangs int) *nvlinkRun {
	t.Helper()
	namespace := namespaceOf(t)
	// The first job also creates the namespace and the runtimes.
	submit(t, mnnvlGang("first", 2, "1s"))
	return &nvlinkRun{
		namespace:  namespace,
		random:     rand.New(rand.NewPCG(8, 4)),
		invariants: newInvariants(t, namespace),
		begin:      time.Now(),
		total:      gangs,
		left:       gangs,
		nextHarm:   4,
		harms:      map[string]int{},
		broken:     map[string]repair{},
	}
}

// submit maintains a number of outstanding gangs.
func (r *nvlinkRun) submit(t *testing.T) {
	t.Helper()
	for ; r.coming < r.total && r.coming-(r.total-r.left) < outstanding; r.coming++ {
		name := fmt.Sprintf("gang-%03d", r.coming)
		team := &nvlinkTeam{
			size: 1 + r.random.IntN(
				18,
			),
			replaces: r.random.IntN(3) == 0,
			created:  time.Now(),
			attempts: map[string]bool{},
		}
		text := mnnvlGang(name, team.size, fmt.Sprintf("%dms", 1000+r.random.IntN(3000)))
		if team.replaces {
			text = strings.Replace(
				text,
				"  annotations:\n",
				"  annotations:\n    lockstep.dev/on-disruption: replace\n",
				1,
			)
		}
		var job unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAMESPACE", r.namespace)), &job.Object); err != nil {
			t.Fatal(err)
		}
		r.invariants.mu.Lock()
		r.invariants.teams[name] = team
		r.invariants.mu.Unlock()
		if _, err := shared.Dynamic.Resource(trainJobs).Namespace(r.namespace).
			Create(t.Context(), &job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// harm does something bad for every other gang that started, however fast the machine is.
func (r *nvlinkRun) harm(t *testing.T) {
	t.Helper()
	if r.invariants.wholes() < r.nextHarm {
		return
	}
	r.nextHarm += 2
	node := r.healthy()
	if node == "" {
		return
	}
	kind := []string{"lost", "drained", "without clique", "without clique", "evicted"}[r.random.IntN(5)]
	r.harms[kind]++
	switch kind {
	case "lost":
		r.lose(t, node)
	case "drained":
		r.patchNode(t, node, `{"spec":{"unschedulable":true}}`)
		r.disrupt(t, node)
		r.mend(node, func(t *testing.T) { t.Helper(); r.patchNode(t, node, `{"spec":{"unschedulable":null}}`) })
	case "without clique":
		r.patchNode(t, node, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, topology.LabelClique))
		clique := r.invariants.racks[node]
		r.mend(node, func(t *testing.T) {
			t.Helper()
			r.patchNode(t, node, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, topology.LabelClique, clique))
		})
		if r.random.IntN(2) == 0 {
			r.disruptNeighbor(t, node)
		}
	default:
		r.disrupt(t, node)
	}
}

// healthy is a tray that nothing is the matter with; mostly one that a gang is on.
func (r *nvlinkRun) healthy() string {
	var all, used []string
	for name, rack := range r.invariants.racks {
		if _, broken := r.broken[name]; rack != "" && !broken {
			all = append(all, name)
		}
	}
	for _, pod := range r.alive() {
		if _, broken := r.broken[pod.Spec.NodeName]; !broken {
			used = append(used, pod.Spec.NodeName)
		}
	}
	if len(used) > 0 && r.random.IntN(4) > 0 {
		all = used
	}
	slices.Sort(all)
	if len(all) == 0 || len(r.broken) > 8 {
		return ""
	}
	return all[r.random.IntN(len(all))]
}

// alive are the pods that are bound, have not ended and are not being deleted.
func (r *nvlinkRun) alive() []corev1.Pod {
	r.invariants.mu.Lock()
	defer r.invariants.mu.Unlock()
	var pods []corev1.Pod
	for _, pod := range r.invariants.pods {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, *pod)
		}
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// lose removes a node with the pods on it, as a broken machine would; it returns in its original state.
func (r *nvlinkRun) lose(t *testing.T, name string) {
	t.Helper()
	at := slices.IndexFunc(machines.Nodes, func(n corev1.Node) bool { return n.Name == name })
	if err := shared.Client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.disrupt(t, name)
	r.mend(name, func(t *testing.T) {
		t.Helper()
		if _, err := shared.Client.CoreV1().Nodes().
			Create(t.Context(), machines.Nodes[at].DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func (r *nvlinkRun) patchNode(t *testing.T, name, patch string) {
	t.Helper()
	_, err := shared.Client.CoreV1().Nodes().
		Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

func (r *nvlinkRun) mend(node string, do func(t *testing.T)) {
	r.broken[node] = repair{time.Now().Add(time.Duration(4000+r.random.IntN(5000)) * time.Millisecond), do}
}

// disrupt evicts the pod of a node; all of its gang if that starts again as a whole.
func (r *nvlinkRun) disrupt(t *testing.T, node string) {
	t.Helper()
	pods := r.alive()
	for _, pod := range pods {
		if pod.Spec.NodeName != node {
			continue
		}
		r.invariants.mu.Lock()
		team := r.invariants.teams[jobOf(&pod)]
		r.invariants.mu.Unlock()
		if team != nil && !team.replaces {
			evict(t, slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return jobOf(&p) != jobOf(&pod) }))
		} else {
			evict(t, []corev1.Pod{pod})
		}
		r.letGo(t, pod, node)
	}
}

// letGo deletes for good a pod whose node is deleted: there is no kubelet that would.
func (r *nvlinkRun) letGo(t *testing.T, pod corev1.Pod, node string) {
	t.Helper()
	if _, err := shared.Client.CoreV1().
		Nodes().
		Get(t.Context(), node, metav1.GetOptions{}); !apierrors.IsNotFound(
		err,
	) {
		return
	}
	none := int64(0)
	err := shared.Client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// disruptNeighbor evicts another pod of the gang that is on the node.
func (r *nvlinkRun) disruptNeighbor(t *testing.T, node string) {
	t.Helper()
	pods := r.alive()
	at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node })
	if at < 0 {
		return
	}
	for _, pod := range pods {
		if jobOf(&pod) == jobOf(&pods[at]) && pod.Spec.NodeName != node {
			r.disrupt(t, pod.Spec.NodeName)
			return
		}
	}
}

// restore carries out due repairs.
func (r *nvlinkRun) restore(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(r.broken)) {
		if repair := r.broken[name]; time.Now().After(repair.at) {
			delete(r.broken, name)
			repair.do(t)
		}
	}
}

// restoreAll leaves the machines as they were.
func (r *nvlinkRun) restoreAll(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(r.broken)) {
		r.broken[name].do(t)
	}
}

// collect takes away the jobs that have ended, about once a second.
func (r *nvlinkRun) collect(t *testing.T) {
	t.Helper()
	if time.Since(r.collected) < time.Second {
		return
	}
	r.collected = time.Now()
	jobs := shared.Dynamic.Resource(trainJobs).Namespace(r.namespace)
	list, err := jobs.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range list.Items {
		team := r.invariants.teams[job.GetName()]
		ended := endOf(job)
		if team == nil || team.ended || ended == "" {
			continue
		}
		if ended != "Complete" {
			t.Errorf("%s ended as %s", job.GetName(), ended)
		}
		team.ended = true
		r.left--
		background := metav1.DeletePropagationBackground
		err := jobs.Delete(t.Context(), job.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// endOf is the condition with which a job ended, "" if it has not.
func endOf(job unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["status"] == "True" &&
			(fields["type"] == "Complete" || fields["type"] == "Failed") {
			return fmt.Sprint(fields["type"])
		}
	}
	return ""
}

func (r *nvlinkRun) report(t *testing.T) {
	t.Helper()
	r.invariants.mu.Lock()
	defer r.invariants.mu.Unlock()
	for _, fault := range r.invariants.faults {
		t.Error(fault)
	}
	attempts, members := 0, 0
	var waits []time.Duration
	for name, team := range r.invariants.teams {
		attempts, members = attempts+len(team.attempts), members+team.size
		if !team.whole.IsZero() {
			waits = append(waits, team.whole.Sub(team.created))
		}
		if !team.ended {
			t.Logf("%s of %d: attempts %v, whole %v, replaces %v", name, team.size,
				slices.Sorted(maps.Keys(team.attempts)), !team.whole.IsZero(), team.replaces)
		}
	}
	slices.Sort(waits)
	if len(waits) == 0 {
		return
	}
	quantile := func(of float64) time.Duration {
		return waits[int(of*float64(len(waits)-1))].Round(10 * time.Millisecond)
	}
	t.Logf(
		"%d gangs of %d trays in %v: %d attempts, %d bindings, harm %v; whole after p50 %v, p95 %v; %d bindings were decided "+
			"before a label was seen",
		r.coming,
		members,
		time.Since(r.begin).Round(time.Second),
		attempts,
		r.invariants.bindings,
		r.harms,
		quantile(.5),
		quantile(.95),
		r.invariants.late,
	)
}
