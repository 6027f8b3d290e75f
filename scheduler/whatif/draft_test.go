package whatif_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// draft is a cluster that is not played yet.
type draft struct {
	whatif.Objects
	members map[string][]*corev1.Pod
}

func (d *draft) add(group *schedulingv1beta1.PodGroup, members []*corev1.Pod) {
	d.PodGroups, d.Pods = append(d.PodGroups, group), slices.Concat(d.Pods, members)
	d.members[group.Name] = members
}

// drawDraft draws a few cliques, important gangs on some of their nodes, and less important ones that wait.
func drawDraft(r *rand.Rand) *draft {
	d := &draft{members: make(map[string][]*corev1.Pod)}
	count, size := 1+r.IntN(3), 2+r.IntN(3)
	d.Nodes = schedulertest.Cliques(count, size)
	for c := range count {
		for n := range size {
			if r.IntN(2) == 0 {
				continue
			}
			group, members := schedulertest.BoundGang(
				fmt.Sprintf("runs-%d-%d", c, n),
				100,
				schedulertest.NodeName(c, n),
			)
			if r.IntN(3) > 0 {
				schedulertest.SetExpectedEnd(
					group,
					time.Duration(1+r.IntN(5))*time.Hour+10*time.Minute,
				) // no end is twice as far as another
			}
			d.add(group, members)
		}
	}
	for i := range 2 + r.IntN(4) {
		group, members := schedulertest.Gang(
			fmt.Sprint("waits-", i),
			1+r.IntN(1+r.IntN(count*size)),
			[]string{"", "clique"}[r.IntN(2)],
		)
		schedulertest.SetQueuedAt(group, r.IntN(50))
		schedulertest.SetPriority(group, members, int32(r.IntN(2)))
		gpus := []string{"4", "4", "2"}[r.IntN(3)]
		for _, m := range members {
			schedulertest.SetRequest(m, schedulertest.GPU, gpus)
		}
		if r.IntN(3) == 0 {
			schedulertest.SetExpectedEnd(group, time.Duration(r.IntN(400))*time.Minute)
		}
		if len(members) > 1 && r.IntN(4) == 0 {
			group.Spec.SchedulingPolicy.Gang.MinCount-- // it can do without its last
		}
		d.add(group, members)
	}
	return d
}

// withDevices are the objects that a what-if takes apart.
func (d *draft) withDevices(objects []runtime.Object) {
	for _, o := range objects {
		switch o := o.(type) {
		case *resourcev1.ResourceSlice:
			d.Devices.Slices = append(d.Devices.Slices, o)
		case *resourcev1.DeviceClass:
			d.Devices.Classes = append(d.Devices.Classes, o)
		case *resourcev1.ResourceClaim:
			d.Devices.Claims = append(d.Devices.Claims, o)
		}
	}
}

// drawDevices draws cliques of nodes with pairs of devices, some of them broken, gangs that run with some of the pairs,
// and gangs that wait for others.
func drawDevices(r *rand.Rand) *draft {
	d := &draft{members: make(map[string][]*corev1.Pod)}
	count, size := 1+r.IntN(3), 2+r.IntN(3)
	d.Nodes = schedulertest.Cliques(count, size)
	d.withDevices(schedulertest.DeviceClasses())
	d.Devices.Classes[0].Spec.ExtendedResourceName = new(string(schedulertest.GPU))
	for _, node := range d.Nodes {
		delete(node.Status.Allocatable, schedulertest.GPU)
		delete(node.Status.Capacity, schedulertest.GPU)
		d.withDevices([]runtime.Object{devicestest.Slice(node, 4, max(0, r.IntN(6)-3))})
	}
	for c := range count {
		for n := range size {
			if r.IntN(3) > 0 {
				continue
			}
			pairs := 1 + r.IntN(2)
			group, members, claims := schedulertest.PairGang(fmt.Sprintf("runs-%d-%d", c, n), 1, pairs, "gpu")
			schedulertest.SetPriority(group, members, 100)
			schedulertest.AllocatePairs(members, claims, pairs, schedulertest.NodeName(c, n))
			if r.IntN(3) > 0 {
				schedulertest.SetExpectedEnd(
					group,
					time.Duration(1+r.IntN(5))*time.Hour+10*time.Minute,
				) // no end is twice as far as another
			}
			d.withDevices(claims)
			d.add(group, members)
		}
	}
	for i := range 2 + r.IntN(3) {
		class := "gpu"
		if r.IntN(8) == 0 {
			class = "gpus" // there is none
		}
		group, members, claims := schedulertest.PairGang(
			fmt.Sprint("waits-", i), 1+r.IntN(1+r.IntN(count*size)), 1+r.IntN(4), class)
		schedulertest.SetQueuedAt(group, r.IntN(50))
		schedulertest.SetPriority(group, members, int32(r.IntN(2)))
		if r.IntN(3) == 0 {
			schedulertest.SetExpectedEnd(group, time.Duration(r.IntN(400))*time.Minute)
		}
		if r.IntN(4) == 0 { // it asks for GPUs by number
			claims = nil
			each := strconv.Itoa(1 + r.IntN(4)) // the rest of a node with different numbers is unknown beforehand
			for _, m := range members {
				m.Spec.ResourceClaims, m.Status.ResourceClaimStatuses = nil, nil
				m.Spec.Containers[0].Resources.Claims = nil
				schedulertest.SetRequest(m, schedulertest.GPU, each)
			}
		}
		d.withDevices(claims)
		d.add(group, members)
	}
	return d
}

// picture describes the draft, a line for each gang.
func picture(d *draft) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes\n", len(d.Nodes))
	for _, g := range d.PodGroups {
		first := d.members[g.Name][0]
		gpus := first.Spec.Containers[0].Resources.Requests[schedulertest.GPU]
		pairs := 0
		for _, claim := range d.Devices.Claims {
			if claim.Name == first.Name+"-devices" {
				pairs = len(claim.Spec.Devices.Constraints)
			}
		}
		fmt.Fprintf(&b, "%s on %q: %d members, %d needed, of %s GPUs or %d pairs, priority %d, %v\n",
			g.Name, first.Spec.NodeName, len(d.members[g.Name]), g.Spec.SchedulingPolicy.Gang.MinCount,
			gpus.String(), pairs, *g.Spec.Priority, g.Annotations)
	}
	return b.String()
}
