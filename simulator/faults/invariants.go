package faults

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// Invariant is what holds whatever goes wrong.
type Invariant string

// The invariants.
const (
	// Whole: no gang is partly on nodes for longer than the patience. Started: least of all one that has never been whole.
	Whole   Invariant = "no gang partial"
	Started Invariant = "no start torn"
	// Once: no device is given twice.
	Once Invariant = "no device twice"
	// Together: a gang that has to be in one domain is.
	Together Invariant = "no gang apart"
	// Owned: no lease outlives its owner.
	Owned Invariant = "no lease without owner"
	// Counted: no job is lost, fails without reason, or is told twice that it is over.
	Counted Invariant = "no job lost"
	// Served: no gang waits while there is room.
	Served Invariant = "no gang waits for nothing"
	// Clean: nothing is left of what is deleted.
	Clean Invariant = "nothing left"
	// Single: a scheduler that does not lead changes nothing.
	Single Invariant = "no second leader"
)

const (
	// patience bounds Whole: the scheduler repairs for five minutes, and evicts after that; a Job makes a rank again within that, or not at all.
	patience = 7 * time.Minute
	// startPatience bounds Started: a minute without progress, and what an eviction takes.
	startPatience = 2 * time.Minute
	// ownerless bounds Owned, idle Served.
	ownerless = 3 * time.Minute
	idle      = 3 * time.Minute
)

// invariants looks at the world.
type invariants struct {
	world  *world
	broken []Violation
	// version is the server's when it was looked at last.
	version int64
	said    map[string]bool
	// since is since when something is as it should not stay.
	since map[string]time.Time
	// changes is how often leases had changed when they were noted last.
	changes int
	// whole are the groups whose gangs were.
	whole map[types.UID]bool
}

func newInvariants(w *world) *invariants {
	return &invariants{
		world: w,
		said:  make(map[string]bool),
		whole: make(map[types.UID]bool),
		since: make(map[string]time.Time),
	}
}

// breaks notes a violation, once for each thing that it is about.
func (v *invariants) breaks(of Invariant, what, format string, args ...any) {
	key := string(of) + "/" + what
	if v.said[key] {
		return
	}
	v.said[key] = true
	violation := Violation{of, v.world.since(), what + ": " + fmt.Sprintf(format, args...)}
	v.broken = append(v.broken, violation)
	v.world.note("BROKEN %s", violation)
}

// is reports whether something is so for longer than a bound, counted from the last trouble.
func (v *invariants) is(so bool, key string, bound time.Duration) bool { //nolint:revive // what is so is not how
	if so {
		return v.lasts(key, bound)
	}
	delete(v.since, key)
	return false
}

// lasts reports whether what is so has been so for longer than a bound.
func (v *invariants) lasts(key string, bound time.Duration) bool {
	since, known := v.since[key]
	if !known {
		since = v.world.now()
		v.since[key] = since
	}
	if v.world.inTrouble() {
		v.since[key] = v.world.now()
		return false
	}
	return v.world.now().Sub(since) > bound
}

// inTrouble reports whether a fault hinders Lockstep, or nobody decides.
func (w *world) inTrouble() bool { return w.hindered > 0 || w.leader == nil }

// gang is a PodGroup with its pods that have not ended.
type gang struct {
	group *schedulingv1beta1.PodGroup
	need  int
	// bound are on nodes and stay, waiting have none.
	bound, waiting []*corev1.Pod
}

func (w *world) gangs() []gang {
	var out []gang
	at := make(map[types.NamespacedName]int)
	for _, o := range w.server.List("PodGroup", "") {
		group, ok := o.(*schedulingv1beta1.PodGroup)
		if !ok || group.Spec.SchedulingPolicy.Gang == nil {
			continue
		}
		at[client.ObjectKeyFromObject(group)] = len(out)
		out = append(out, gang{group: group, need: int(group.Spec.SchedulingPolicy.Gang.MinCount)})
	}
	for _, o := range w.server.List("Pod", "") {
		pod, ok := o.(*corev1.Pod)
		key, grouped := snapshot.GroupOf(pod)
		i, known := at[key]
		if !ok || !grouped || !known || hasEnded(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Spec.NodeName != "" {
			out[i].bound = append(out[i].bound, pod)
		} else {
			out[i].waiting = append(out[i].waiting, pod)
		}
	}
	return out
}

// look looks at what holds at every instant.
func (v *invariants) look() {
	gangs := v.world.gangs()
	changed := v.version != v.world.server.Version()
	v.version = v.world.server.Version()
	v.partial(gangs)
	v.leases()
	v.served(gangs)
	if changed {
		v.once()
		v.together(gangs)
	}
}

func (v *invariants) partial(gangs []gang) {
	for _, g := range gangs {
		partial := len(g.bound) > 0 && len(g.bound) < g.need && !v.isFinishing(g)
		if v.is(partial, "partial/"+string(g.group.UID), patience) {
			v.breaks(Whole, g.group.Name, "%d of %d members have nodes, %d wait", len(g.bound), g.need, len(g.waiting))
		}
		if len(g.bound) >= g.need {
			v.whole[g.group.UID] = true
		}
		torn := partial && !v.whole[g.group.UID] && len(g.bound)+len(g.waiting) >= g.need
		if v.is(torn, "torn/"+string(g.group.UID), startPatience) {
			v.breaks(
				Started,
				g.group.Name,
				"%d of %d members have nodes, %d wait",
				len(g.bound),
				g.need,
				len(g.waiting),
			)
		}
	}
}

// isFinishing reports whether members of a gang have succeeded: the others follow, or come again without them.
func (v *invariants) isFinishing(g gang) bool {
	return slices.ContainsFunc(v.world.server.List("Pod", g.group.Namespace), func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.Status.Phase != corev1.PodSucceeded {
			return false
		}
		key, ok := snapshot.GroupOf(pod)
		return ok && key == client.ObjectKeyFromObject(g.group)
	})
}

// once counts what pods have on each node.
func (v *invariants) once() {
	used := make(map[string]int64)
	for _, o := range v.world.server.List("Pod", "") {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !hasEnded(pod) {
			for _, c := range pod.Spec.Containers {
				used[pod.Spec.NodeName] += c.Resources.Requests.Name(gpu, "").Value()
			}
		}
	}
	for _, o := range v.world.server.List("Node", "") {
		if has := int64(v.world.scene.GPUs); used[o.GetName()] > has {
			v.breaks(Once, o.GetName(), "%d GPUs of %d are given", used[o.GetName()], has)
		}
	}
}

func (v *invariants) together(gangs []gang) {
	for _, g := range gangs {
		j := v.world.jobOf(g)
		if j == nil || !j.Rack {
			continue
		}
		racks := make(map[string]bool)
		for _, pod := range g.bound {
			node, err := v.world.server.Get("Node", types.NamespacedName{Name: pod.Spec.NodeName})
			if err == nil &&
				!node.GetCreationTimestamp().
					After(snapshot.BoundAt(pod)) { // else it was on another machine of that name
				racks[node.GetLabels()[rackLabel]] = true
			}
		}
		if len(racks) > 1 {
			v.breaks(Together, g.group.Name, "it is in %d racks", len(racks))
		}
	}
}

func (w *world) jobOf(g gang) *Job {
	for i := range w.scene.Jobs {
		if w.scene.Jobs[i].Name == g.group.Name {
			return &w.scene.Jobs[i]
		}
	}
	return nil
}

func (v *invariants) leases() {
	if v.world.leader == nil {
		return
	}
	v.noteLeases()
	for _, l := range v.world.leader.waiting.Leases() {
		_, err := v.world.server.Get("PodGroup", l.Owner)
		if v.is(err != nil, "lease/"+l.Owner.String(), ownerless) {
			v.breaks(Owned, l.Owner.Name, "a lease (%s) of %d nodes", l.Lease.Reason, len(l.Room))
		}
	}
}

// noteLeases has the log say when leases change.
func (v *invariants) noteLeases() {
	if v.world.log == nil || v.world.leader.waiting.Changes() == v.changes {
		return
	}
	v.changes = v.world.leader.waiting.Changes()
	var line strings.Builder
	line.WriteString("leases:")
	for _, l := range v.world.leader.waiting.Leases() {
		how := "closed"
		if l.Lease.Open {
			how = "open"
		}
		fmt.Fprintf(&line, " %s %s %s on %v;", l.Owner.Name, how, l.Lease.Reason, slices.Sorted(maps.Keys(l.Room)))
	}
	v.world.note("%s", line.String())
}

// served looks for gangs that could start on nodes that nobody uses and of which nothing is leased.
func (v *invariants) served(gangs []gang) {
	free := v.world.free()
	for _, g := range gangs {
		j := v.world.jobOf(g)
		waits := j != nil && len(g.bound) == 0 && len(g.waiting) >= g.need && v.world.fits(*j, free)
		if v.is(waits, "waits/"+string(g.group.UID), idle) {
			v.breaks(Served, g.group.Name, "%d members wait, and there is room", len(g.waiting))
		}
	}
}

// free is how many GPUs each open node has that nobody has or leases.
func (w *world) free() map[string]int {
	free := make(map[string]int)
	for _, o := range w.server.List("Node", "") {
		node, ok := o.(*corev1.Node)
		if ok && !node.Spec.Unschedulable && len(node.Spec.Taints) == 0 {
			free[node.Name] = w.scene.GPUs
		}
	}
	for _, o := range w.server.List("Pod", "") {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !hasEnded(pod) {
			for _, c := range pod.Spec.Containers {
				free[pod.Spec.NodeName] -= int(c.Resources.Requests.Name(gpu, "").Value())
			}
		}
	}
	if w.leader != nil {
		for _, l := range w.leader.waiting.Leases() {
			for node := range l.Room {
				delete(free, node)
			}
		}
	}
	return free
}

// fits reports whether a job fits on what is free.
func (w *world) fits(j Job, free map[string]int) bool {
	room := make(map[string]int)
	for at := range w.scene.Racks * w.scene.PerRack {
		rack := ""
		if j.Rack {
			rack = strconv.Itoa(at / w.scene.PerRack)
		}
		room[rack] += max(free[w.scene.nodeName(at)], 0) / j.GPUs
	}
	for _, n := range room {
		if n >= j.Nodes {
			return true
		}
	}
	return false
}

// calls looks at a call of a scheduler.
func (v *invariants) calls(c *wire.Call) {
	leader := v.world.leader
	if c.Process.Name == schedulerName && !c.Verb.Reads() && (leader == nil || leader.calls != c.Process) {
		v.breaks(Single, c.Kind, "a scheduler that stands by asks to %s %s", c.Verb, c.Name)
	}
}

// over looks at what has become of the jobs.
func (v *invariants) over() {
	v.counted(len(v.world.ended))
	for _, j := range v.world.scene.Jobs {
		if v.world.deleted[j.Name] {
			continue
		}
		found, err := v.world.server.Get("TrainJob", types.NamespacedName{Namespace: namespace, Name: j.Name})
		job, ok := found.(*trainerv1alpha1.TrainJob)
		switch {
		case err != nil || !ok:
			v.breaks(Counted, j.Name, "it is gone")
		case !job.Ended():
			v.breaks(Counted, j.Name, "it has not ended: %s", words(job.Status.Conditions))
		case job.Ending().Type != trainerv1alpha1.TrainJobComplete:
			v.breaks(Counted, j.Name, "it has failed: %s", job.Ending().Message)
		}
	}
}

// counted looks at how many ends of jobs controllers have counted: a death may cost one, and none is counted twice.
func (v *invariants) counted(ended int) {
	counted := 0.0
	for _, registry := range v.world.registries {
		families, err := registry.Gather()
		v.world.must(err)
		for _, family := range families {
			if name := family.GetName(); !strings.HasSuffix(name, "trainjobs_completed_total") &&
				!strings.HasSuffix(name, "trainjobs_failed_total") {
				continue
			}
			for _, metric := range family.GetMetric() {
				counted += metric.GetCounter().GetValue()
			}
		}
	}
	if int(counted) > ended {
		v.breaks(Counted, "metrics", "%d jobs have ended, and %v are counted", ended, counted)
	}
}

// gone looks at what is left when all jobs are deleted.
func (v *invariants) gone() {
	for _, left := range v.world.leftovers() {
		v.breaks(Clean, left, "it is still there")
	}
}
