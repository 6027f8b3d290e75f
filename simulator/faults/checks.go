package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// look checks the invariants that hold at every instant.
func (v *invariants) look() {
	gangs := v.world.gangs()
	changed := v.version != v.world.server.Version()
	v.version = v.world.server.Version()
	v.partial(gangs)
	v.leases()
	v.served(gangs)
	if changed {
		v.once()
		v.devices()
		v.together(gangs)
	}
}

func (v *invariants) partial(gangs []gang) {
	for _, g := range gangs {
		// A Job may make a failed rank again only after ten minutes, and holds its nodes meanwhile.
		lacks := len(g.bound) > 0 && len(g.bound) < g.need && !v.isFinishing(g)
		partial := lacks && len(g.bound)+len(g.waiting) >= g.need
		if v.is(lacks && !partial, "unmade/"+string(g.group.UID), unmade) {
			v.breaks(Whole, g.group.Name, "%d of %d members have nodes, and no others come", len(g.bound), g.need)
		}
		if v.is(partial, "partial/"+string(g.group.UID), patience) {
			v.breaks(Whole, g.group.Name, "%d of %d members have nodes, %d wait", len(g.bound), g.need, len(g.waiting))
		}
		if len(g.bound) >= g.need {
			v.whole[g.group.UID] = true
		}
		torn := partial && !v.whole[g.group.UID]
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

// isFinishing reports whether members of a gang have succeeded: the others follow, or are created again without them.
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

// once sums up the devices of pods on each node.
func (v *invariants) once() {
	used, thieves := make(map[string]int), make(map[string]bool)
	for _, o := range v.world.server.List("Pod", "") {
		pod, ok := o.(*corev1.Pod)
		if ok && pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			thieves[pod.Spec.NodeName] = true // two schedulers may bind at once
		}
		if ok && pod.Spec.NodeName != "" && !hasEnded(pod) {
			used[pod.Spec.NodeName] += gpusOf(pod)
		}
	}
	for _, o := range v.world.server.List("Node", "") {
		if has := v.world.scene.GPUs; used[o.GetName()] > has && !thieves[o.GetName()] {
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
			if err != nil {
				continue
			}
			// A node that is younger than the binding is another machine of that name.
			if made := node.GetCreationTimestamp(); !made.After(snapshot.BoundAt(pod)) {
				racks[node.GetLabels()[rackLabel]] = true
			}
		}
		if len(racks) > 1 {
			v.breaks(Together, g.group.Name, "it is in %d racks", len(racks))
		}
	}
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

// served looks for gangs that could start on nodes that are unused, and that no other gang has leased.
func (v *invariants) served(gangs []gang) {
	for _, g := range gangs {
		j := v.world.jobOf(g)
		waits := j != nil && len(g.bound) == 0 && len(g.waiting) >= g.need &&
			v.world.fits(*j, v.world.freeFor(client.ObjectKeyFromObject(g.group)))
		if v.is(waits, "waits/"+string(g.group.UID), idle) {
			v.breaks(Served, g.group.Name, "%d members wait, and there is room", len(g.waiting))
		}
	}
}

// calls checks a call of a scheduler.
func (v *invariants) calls(c *wire.Call) {
	leader := v.world.leader
	if c.Process.Name == schedulerName && !c.Verb.Reads() && (leader == nil || leader.calls != c.Process) {
		v.breaks(Single, c.Kind, "a scheduler that stands by asks to %s %s", c.Verb, c.Name)
	}
}

// over checks the outcomes of the jobs.
func (v *invariants) over() {
	v.counted(len(v.world.ended))
	for _, j := range v.world.scene.Jobs {
		if v.world.deleted[j.Name] {
			continue
		}
		if j.Native {
			if !v.world.isOver(j) {
				v.breaks(Counted, j.Name, "the Job has not completed")
			}
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

// counted checks the number of ends of jobs that controllers have counted: a death may cost one, and none is counted
// twice.
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

// gone checks that nothing is left after all jobs are deleted.
func (v *invariants) gone() {
	for _, left := range v.world.leftovers() {
		v.breaks(Clean, left, "it is still there")
	}
}
