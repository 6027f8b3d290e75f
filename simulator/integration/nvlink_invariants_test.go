package integration_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
	"github.com/lockstep-project/lockstep/topology"
)

// sight is the time by which a scheduler may see a change late: a decision that is on its way when a label changes is
// no fault. A gang of 18 has 18 claims to be written before it is bound.
const sight = 3 * time.Second

// invariants checks every binding of a pod with a channel against the labels of nodes, whose changes it watches.
type invariants struct {
	// racks are the cliques in which nodes are, whatever their labels say at the moment.
	racks map[string]string

	mu    sync.Mutex
	nodes map[string][]labeling
	// pods are those that are bound and have not ended, by UID; teams are the gangs, by name.
	pods   map[types.UID]*corev1.Pod
	teams  map[string]*nvlinkTeam
	faults []string
	// bindings is the number of bindings, late that of those that were decided before a label was seen.
	bindings, late int
	judged         map[types.UID]bool
	unjudged       []binding
}

// labeling holds the labels of a node from an instant on.
type labeling struct {
	version        uint64
	at             time.Time
	clique, domain string
	gone           bool
}

// binding is a pod that was bound a moment ago.
type binding struct {
	pod     *corev1.Pod
	version uint64
	at      time.Time
}

// nvlinkTeam is the record of a gang.
type nvlinkTeam struct {
	size     int
	replaces bool
	created  time.Time
	domain   types.UID
	// whole is the time at which all of it was bound for the first time.
	whole    time.Time
	attempts map[string]bool
	ended    bool
}

// newInvariants watches from now on.
func newInvariants(t *testing.T, namespace string) *invariants {
	t.Helper()
	w := &invariants{
		racks: map[string]string{}, nodes: map[string][]labeling{}, pods: map[types.UID]*corev1.Pod{},
		teams: map[string]*nvlinkTeam{}, judged: map[types.UID]bool{},
	}
	for _, node := range machines.Nodes {
		w.racks[node.Name] = node.Labels[topology.LabelClique]
	}
	nodes := informers.NewSharedInformerFactory(shared.Client, 0)
	pods := informers.NewSharedInformerFactoryWithOptions(shared.Client, 0, informers.WithNamespace(namespace))
	follow(t, nodes.Core().V1().Nodes().Informer(), w.seeNode, w.missNode)
	follow(t, pods.Core().V1().Pods().Informer(), w.seePod, w.missPod)
	for _, factory := range []informers.SharedInformerFactory{nodes, pods} {
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
	}
	return w
}

// follow reports all objects that are created or changed, and those that are deleted.
func follow[O any](t *testing.T, informer cache.SharedIndexInformer, see, miss func(*O)) {
	t.Helper()
	tell := func(to func(*O)) func(any) {
		return func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			if o, ok := object.(*O); ok {
				to(o)
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell(see), UpdateFunc: func(_, now any) { tell(see)(now) }, DeleteFunc: tell(miss),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func versionOf(text string) uint64 {
	version, _ := strconv.ParseUint(text, 10, 64)
	return version
}

func (w *invariants) seeNode(node *corev1.Node) { w.noteNode(node, false) }

func (w *invariants) missNode(node *corev1.Node) { w.noteNode(node, true) }

func (w *invariants) noteNode(node *corev1.Node, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[node.Name] = append(w.nodes[node.Name], labeling{
		versionOf(
			node.ResourceVersion,
		),
		time.Now(),
		node.Labels[topology.LabelClique],
		node.Labels[nvlink.DomainLabel],
		gone,
	})
}

// seePod records a binding, and checks the conditions that depend on pods alone: that its gang is in one clique, and
// that it has its node for itself.
func (w *invariants) seePod(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(w.pods, pod.UID)
		return
	}
	if pod.Spec.NodeName == "" || len(pod.Spec.ResourceClaims) == 0 {
		return
	}
	_, known := w.pods[pod.UID]
	w.pods[pod.UID] = pod
	if known {
		return
	}
	w.bindings++
	w.unjudged = append(w.unjudged, binding{pod, versionOf(pod.ResourceVersion), time.Now()})
	together := 0
	for _, other := range w.pods {
		if other.UID != pod.UID && other.Spec.NodeName == pod.Spec.NodeName {
			w.fault("%s and %s share node %s", pod.Name, other.Name, pod.Spec.NodeName)
		}
		if jobOf(other) != jobOf(pod) || attemptOf(other) != attemptOf(pod) || other.DeletionTimestamp != nil {
			continue
		}
		together++
		if a, b := w.racks[other.Spec.NodeName], w.racks[pod.Spec.NodeName]; a != b || a == "" {
			w.fault(
				"%s is in clique %q and %s in %q: %s, %s",
				pod.Name,
				b,
				other.Name,
				a,
				pod.Spec.NodeName,
				other.Spec.NodeName,
			)
		}
	}
	if team := w.teams[jobOf(pod)]; team != nil {
		team.attempts[attemptOf(pod)] = true
		if together == team.size && team.whole.IsZero() {
			team.whole = time.Now()
		}
	}
}

func (w *invariants) missPod(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, pod.UID)
}

// wholes returns the number of gangs that were bound as a whole.
func (w *invariants) wholes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, team := range w.teams {
		if !team.whole.IsZero() {
			n++
		}
	}
	return n
}

func jobOf(pod *corev1.Pod) string { return pod.Labels["jobset.sigs.k8s.io/jobset-name"] }

func attemptOf(pod *corev1.Pod) string { return pod.Labels["jobset.sigs.k8s.io/restart-attempt"] }

func (w *invariants) fault(format string, args ...any) {
	w.faults = append(w.faults, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// judge checks the bindings of a while ago: the labels of that moment are known by now.
func (w *invariants) judge(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	var due []binding
	w.unjudged = slices.DeleteFunc(w.unjudged, func(b binding) bool {
		if time.Since(b.at) < sight {
			return false
		}
		due = append(due, b)
		return true
	})
	w.mu.Unlock()
	for _, b := range due {
		domain := w.domain(t, b.pod)
		w.mu.Lock()
		w.judgeOne(b, domain)
		w.mu.Unlock()
	}
}

// domain is that of the pod's job.
func (w *invariants) domain(t *testing.T, pod *corev1.Pod) types.UID {
	t.Helper()
	w.mu.Lock()
	team := w.teams[jobOf(pod)]
	w.mu.Unlock()
	if team == nil {
		return ""
	}
	if team.domain == "" {
		team.domain = domainOf(t, jobOf(pod))
	}
	return team.domain
}

// judgeOne compares a binding with the labels that its node had, and had for longer than a scheduler needs to see them.
func (w *invariants) judgeOne(b binding, domain types.UID) {
	history := w.nodes[b.pod.Spec.NodeName]
	foreign := func(l labeling) bool {
		return l.domain != "" && domain != "" && l.domain != string(domain)
	}
	outside := func(l labeling) bool { return l.clique == "" || l.gone }
	for what, wrong := range map[string]func(labeling) bool{
		"labeled for another domain": foreign, "in no clique": outside,
	} {
		since, now := time.Time{}, false
		for _, l := range history {
			if l.version > b.version {
				break
			}
			if now = wrong(l); !now {
				since = time.Time{}
			} else if since.IsZero() {
				since = l.at
			}
		}
		switch {
		case !now:
		case b.at.Sub(since) > sight:
			w.fault(
				"%s was bound to node %s, which was %s for %v",
				b.pod.Name,
				b.pod.Spec.NodeName,
				what,
				b.at.Sub(since),
			)
		default:
			w.late++
		}
	}
}
