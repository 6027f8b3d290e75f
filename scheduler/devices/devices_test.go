package devices_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Three cliques of four. In the first a node has one pair whose NIC is elsewhere, in the second one publishes nothing:
// a gang that needs all pairs of four nodes starts in the third, at once.
func TestDevices_GangStartsWhereAlignedPairsAre(t *testing.T) {
	nodes := schedulertest.Cliques(3, 4)
	objects := slices.Concat(schedulertest.Objects(nodes...), schedulertest.DeviceClasses())
	for _, node := range nodes {
		switch node.Name {
		case "c0-n2":
			objects = append(objects, devicestest.Slice(node, 4, 1))
		case "c1-n1":
		default:
			objects = append(objects, devicestest.Slice(node, 4, 0))
		}
	}
	group, members, claims := schedulertest.PairGang("train", 4, 4, "gpu")
	refusals := schedulertest.Metric(t, "lockstep_scheduler_pin_refusals_total", "")
	c := schedulertest.NewCluster(t, objects, claims)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(2, 4)) {
		t.Errorf("the gang is on %v", got)
	}
	if n := schedulertest.Metric(t, "lockstep_scheduler_pin_refusals_total", "") - refusals; n != 0 {
		t.Errorf("%v planned nodes were refused", n)
	}
}

// A gang whose claims are malformed waits, and its condition says why. Other gangs start.
func TestDevices_MalformedClaimsAreExplained(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(1, 4, 2)
	wrong, lost, itsClaims := schedulertest.PairGang("wrong", 2, 1, "gpus")
	other, fine, claims := schedulertest.PairGang("fine", 2, 2, "gpu")
	c := schedulertest.NewCluster(t, objects, itsClaims, claims)
	c.Create(t, wrong, lost)
	if why := c.WaitRejected(t, "wrong"); !strings.Contains(why, "gpus") {
		t.Errorf("it waits for: %s", why)
	}
	c.Create(t, other, fine)
	c.WaitBound(t, fine)
}

// A gang whose selector takes long for each device waits, and its condition says why. Nothing is evaluated for it.
func TestDevices_DearSelectorsAreExplained(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(1, 4, 2)
	wrong, lost, itsClaims := schedulertest.PairGang("wrong", 2, 1, "gpu")
	ten := "[1,1,1,1,1,1,1,1,1,1]"
	dear := fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, %[1]s.all(d, %[1]s.all(e, a > 0)))))", ten)
	for _, c := range itsClaims {
		exactly := c.(*resourcev1.ResourceClaim).Spec.Devices.Requests[0].Exactly
		exactly.Selectors = append(exactly.Selectors, resourcev1.DeviceSelector{
			CEL: &resourcev1.CELDeviceSelector{Expression: dear},
		})
	}
	other, fine, claims := schedulertest.PairGang("fine", 2, 2, "gpu")
	c := schedulertest.NewCluster(t, objects, itsClaims, claims)
	c.Create(t, wrong, lost)
	if why := c.WaitRejected(t, "wrong"); !strings.Contains(why, "units of work for each device, at most 2000") {
		t.Errorf("it waits for: %s", why)
	}
	c.Create(t, other, fine)
	c.WaitBound(t, fine)
}

// Both cliques are full of gangs with devices, and evicting that of the second loses less. The important gang evicts it
// and gets its devices, no sooner than the garbage collector has deleted the claims; the other gang stays, however long
// that takes.
func TestDevices_PreemptionFreesDevices(t *testing.T) {
	for name, lag := range map[string]time.Duration{"at once": 0, "late": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := schedulertest.PairedCliques(2, 4, 4)
			pods := map[string][]*corev1.Pod{}
			for i, name := range []string{"old", "young"} {
				group, members, claims := schedulertest.PairGang(name, 4, 4, "gpu")
				schedulertest.AllocatePairs(members, claims, 4, schedulertest.CliqueNodes(i, 4)...)
				schedulertest.SetRunning(group, members, []time.Duration{time.Hour, time.Minute}[i], 0)
				objects = slices.Concat(
					objects,
					schedulertest.Objects(group),
					schedulertest.Objects(members...),
					claims,
				)
				pods[name] = members
			}
			high, members, claims := schedulertest.PairGang("high", 4, 4, "gpu")
			schedulertest.SetPriority(high, members, 1_001_000)
			c := schedulertest.NewCluster(t, objects, claims)
			c.CollectClaimsAfter(t, lag)
			c.Create(t, high, members)
			if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
				t.Errorf("the important gang is on %v", got)
			}
			for _, pod := range pods["old"] {
				if _, err := c.CoreV1().
					Pods(schedulertest.Namespace).
					Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil {
					t.Errorf("%s went too: %v", pod.Name, err)
				}
			}
		})
	}
}

// The claims of a gang are deleted when it has ended. The next gang gets its devices, although nothing asked for
// devices meanwhile.
func TestDevices_EndedGangFreesDevices(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(1, 4, 4)
	first, members, claims := schedulertest.PairGang("first", 4, 4, "gpu")
	second, others, theirs := schedulertest.PairGang("second", 4, 4, "gpu")
	c := schedulertest.NewCluster(t, objects, claims, theirs)
	c.CollectClaims(t)
	c.Create(t, first, members)
	c.WaitBound(t, members)
	c.DeletePods(t, members)
	c.WaitDeleted(t, members)
	c.Create(t, second, others)
	c.WaitBound(t, others)
}

// runsForAnHour returns a gang that has all four pairs of nodes of the first clique and ends in an hour, with its
// claims, and its members.
func runsForAnHour(size int) (objects []any, members []*corev1.Pod) {
	group, members, claims := schedulertest.PairGang("runs", size, 4, "gpu")
	schedulertest.AllocatePairs(members, claims, 4, schedulertest.CliqueNodes(0, size)...)
	schedulertest.SetRunning(group, members, time.Minute, 0)
	return []any{schedulertest.SetExpectedEnd(group, time.Hour), members, claims}, members
}

// A gang with devices holds the whole fleet for an hour. The first gang of the queue gets a lease there, devices
// included.
func TestReservation_IncludesDevices(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(1, 4, 4)
	running, members := runsForAnHour(4)
	waits, its, itsClaims := schedulertest.PairGang("waits", 2, 4, "gpu")
	c := schedulertest.NewCluster(t, append(running, objects, itsClaims)...)
	c.CollectClaims(t)
	c.Create(t, waits, its)
	why := c.WaitRejected(t, "waits")
	if !strings.Contains(why, "a place is reserved for it in fabric.0, expected to be free at ") {
		t.Errorf("it waits for: %s", why)
	}
	c.DeletePods(t, members)
	c.WaitBound(t, its)
}

// A gang with devices holds two of four nodes for an hour, and the first of the queue needs the devices of all four. A
// gang that ends within the hour starts on the two free nodes. A gang without an expected end does not.
func TestReservation_BackfillOnDevicesMustEndInTime(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(1, 4, 4)
	running, members := runsForAnHour(2)
	first, its, itsClaims := schedulertest.PairGang("first", 4, 4, "gpu")
	long, stays, staysClaims := schedulertest.PairGang("long", 2, 4, "gpu")
	short, passes, passesClaims := schedulertest.PairGang("short", 2, 4, "gpu")
	for i, g := range []*schedulingv1beta1.PodGroup{first, long, short} {
		schedulertest.SetQueuedAt(g, i)
	}
	c := schedulertest.NewCluster(t, append(running, objects, itsClaims, staysClaims, passesClaims)...)
	c.CollectClaims(t)
	c.Create(t, first, its)
	why := c.WaitRejected(t, "first")
	if !strings.Contains(why, "a place is reserved for it in fabric.0, expected to be free at ") {
		t.Errorf("the first waits for: %s", why)
	}
	c.Create(t, long, stays)
	c.WaitRejected(t, "long")
	c.Create(t, schedulertest.SetExpectedEnd(short, time.Minute), passes)
	c.WaitBound(t, passes)
	c.ExpectUnbound(t, stays)
	c.DeletePods(t, passes)
	c.DeletePods(t, members)
	c.WaitBound(t, its)
}

// One node is free, and the first of the queue needs all four pairs of it and of a node that is held for an hour. A
// later gang asks for three pairs. That is another question, and still it does not get devices of the leased place.
func TestReservation_CoversDevicesOfOtherClaims(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(1, 2, 4)
	running, members := runsForAnHour(1)
	first, its, itsClaims := schedulertest.PairGang("first", 2, 4, "gpu")
	other, three, threeClaims := schedulertest.PairGang("other", 1, 3, "gpu")
	schedulertest.SetQueuedAt(first, 0)
	schedulertest.SetQueuedAt(other, 1)
	c := schedulertest.NewCluster(t, append(running, objects, itsClaims, threeClaims)...)
	c.CollectClaims(t)
	c.Create(t, first, its)
	c.WaitRejected(t, "first")
	c.Create(t, other, three)
	if why := c.WaitRejected(t, "other"); !strings.Contains(why, "reserved for default/first") {
		t.Errorf("the other waits for: %s", why)
	}
	c.DeletePods(t, members)
	c.WaitBound(t, its)
}

// Gangs with devices run in both cliques, and one of them ends in a quarter of an hour. The first of the queue may not
// preempt and has a lease in that clique. The second may preempt and evicts the other gang. The first starts in the
// clique that this frees. Then no lease binds the second, which evicts the gang in the other clique.
func TestReservation_SecondGangPreemptsOutsideTheLease(t *testing.T) {
	t.Parallel()
	objects := schedulertest.PairedCliques(2, 2, 4)
	for i, name := range []string{"ends", "stays"} {
		group, members, claims := schedulertest.PairGang(name, 2, 4, "gpu")
		schedulertest.AllocatePairs(members, claims, 4, schedulertest.CliqueNodes(i, 2)...)
		schedulertest.SetRunning(group, members, time.Minute, 0)
		if name == "ends" {
			group = schedulertest.SetExpectedEnd(group, 15*time.Minute)
		}
		objects = slices.Concat(objects, schedulertest.Objects(group), schedulertest.Objects(members...), claims)
	}
	first, its, itsClaims := schedulertest.PairGang("first", 2, 4, "gpu")
	schedulertest.SetPriority(first, its, 1_000_100)
	for _, pod := range its {
		pod.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	}
	second, theirs, theirClaims := schedulertest.PairGang("second", 2, 4, "gpu")
	schedulertest.SetPriority(second, theirs, 1_000_050)
	c := schedulertest.NewCluster(t, objects, itsClaims, theirClaims)
	c.CollectClaims(t)
	c.Create(t, first, its)
	if why := c.WaitRejected(t, "first"); !strings.Contains(why, "a place is reserved for it in fabric.0") {
		t.Fatalf("the first waits for: %s", why)
	}
	c.Create(t, second, theirs)
	if got := c.WaitBound(t, its); !slices.Equal(got, schedulertest.CliqueNodes(1, 2)) {
		t.Errorf("the first is on %v", got)
	}
	c.WaitBound(t, theirs)
}

// Arguments of a plugin that takes none are an error, and are not ignored.
func TestDevices_PluginTakesNoArguments(t *testing.T) {
	_, err := devices.New(&devices.Shared{}, gangplacement.Planned, timing.With(clock.RealClock{}))(
		t.Context(), &runtime.Unknown{Raw: []byte(`{"filterTimeout": "1s"}`)}, nil)
	if err == nil || !strings.Contains(err.Error(), "no arguments") {
		t.Errorf("error is %v", err)
	}
}
