package importer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// addRunning puts running pods onto their nodes. A pod that is being deleted holds its node, as it does for the
// scheduler.
func (c *snapshotBuilder) addRunning() {
	units, gone := c.units()
	if gone > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d pods are on nodes that are not there, and hold nothing", gone))
	}
	var endless, overdue []string
	for _, u := range units {
		r := scenario.Running{
			Name: u.Name, Holds: u.Holds, IsGang: u.Group != nil && !u.Stays(),
			Ran: c.ran(u), Reported: u.Group != nil && !u.Leaving(), Sweep: scenario.Sweep(snapshot.SweepOf(u.Group)),
		}
		for _, held := range u.Holds {
			r.Accelerators += held.Demand[c.Accelerator]
			free := c.Ledger.Free[held.Node]
			for i := range free {
				free[i] = max(free[i]-held.Demand[i], 0) // a node may be overcommitted
			}
		}
		if r.Ends, r.Expected = c.end(u); r.Ends < 0 {
			r.Ends, r.Expected = 0, max(r.Expected, 0)
			overdue = append(overdue, u.Name)
		}
		if r.Ends == scenario.Forever && r.IsGang {
			endless = append(endless, u.Name)
		}
		c.Running = append(c.Running, r)
		c.objects.Running = append(c.objects.Running, Workload{Group: u.Group, Pods: u.Pods})
	}
	if len(endless) > 0 {
		c.Notes = append(
			c.Notes,
			fmt.Sprintf(
				"the ends of %d gangs that run are unknown, so they run on: %s",
				len(endless),
				named(endless),
			),
		)
	}
	if len(overdue) > 0 {
		c.Notes = append(
			c.Notes,
			fmt.Sprintf("%d that run should have ended before, and end at once: %s", len(overdue), named(overdue)),
		)
	}
}

// units returns running gangs and single pods by name, with the capacity that they hold. gone counts pods on nodes that
// are not in the snapshot.
func (c *snapshotBuilder) units() (units []snapshot.Unit, gone int) {
	at := make(map[string]int)
	slices.SortFunc(c.bound, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(a.Spec.NodeName, b.Spec.NodeName),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
		)
	})
	for _, pod := range c.bound {
		node, ok := c.Ledger.Tree.Index(pod.Spec.NodeName)
		if !ok {
			gone++
			continue
		}
		u := snapshot.Unit{Name: pod.Namespace + "/" + pod.Name + "/"}
		if key, ok := snapshot.GroupOf(pod); ok && c.isGang(key) {
			u.Name, u.Group = key.String(), c.groups[key]
		}
		i, seen := at[u.Name]
		if !seen {
			i, units = len(units), append(units, u)
			at[u.Name] = i
		}
		units[i].Pods = append(units[i].Pods, pod)
		units[i].Holds = append(units[i].Holds, topology.Held{Node: node, Demand: c.capacity(snapshot.Requests(pod))})
	}
	slices.SortFunc(units, func(a, b snapshot.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return units, gone
}

// end returns when a unit ends and when the scheduler expects it to, since the beginning; negative for an end before.
// The scheduler reads the PodGroup, so a deadline of the gang's pods is unknown to it.
func (c *snapshotBuilder) end(u snapshot.Unit) (ends, expected time.Duration) {
	if u.Leaving() {
		latest := u.Pods[0].DeletionTimestamp.Time
		for _, pod := range u.Pods {
			if pod.DeletionTimestamp.After(latest) {
				latest = pod.DeletionTimestamp.Time
			}
		}
		left := max(c.since(latest), 0)
		return left, left
	}
	ends, expected = scenario.Forever, scenario.Forever
	if u.Stays() {
		return ends, expected
	}
	if at := u.End(); !at.IsZero() {
		ends, expected = c.since(at), c.since(at)
	}
	for _, pod := range u.Pods {
		if limit := pod.Spec.ActiveDeadlineSeconds; limit != nil && pod.Status.StartTime != nil {
			ends = min(ends, c.since(pod.Status.StartTime.Add(time.Duration(*limit)*time.Second)))
		}
	}
	return ends, expected
}

// ran returns the time that a unit has run at the beginning, 0 if unknown.
func (c *snapshotBuilder) ran(u snapshot.Unit) time.Duration {
	if started := u.Started(); !started.IsZero() {
		return max(0, -c.since(started))
	}
	return 0
}

// since returns the time from the beginning to an instant, in whole seconds.
func (c *snapshotBuilder) since(at time.Time) time.Duration {
	return at.Sub(c.Begin).Round(time.Second)
}
