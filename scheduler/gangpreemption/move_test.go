//go:build !race

package gangpreemption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/gangpreemption"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// The clique is full, so the lost member has no room in it; another clique holds all. The survivors leave as disrupted,
// and the other clique is theirs although a later gang waits for it.
//
//	before  c0: 0 1 2 3     c1: . . . .
//	lost    c0: 0 - 2 3     c1: . . . .    and "late" arrives, which needs four
//	after   c0: .   . .     c1: 0 1 2 3
func TestReplacement_GangMovesFromFullClique(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), group, members)
	c.LoseNodes(t, members[1:2], "c0-n1")
	c.Create(t, schedulertest.Recreated(members[1]))
	survivors := []*corev1.Pod{members[0], members[2], members[3]}
	c.WaitDeleted(t, survivors)
	marked, deleted := c.Evictions("train")
	if want := []string{"train-0", "train-2", "train-3"}; !slices.Equal(deleted, want) {
		t.Errorf("%v were marked and deleted, want %v", deleted, want)
	}
	for name, reason := range marked {
		if reason != gangpreemption.Moved {
			t.Errorf("%s left for %s", name, reason)
		}
	}
	late, others := schedulertest.Gang("late", 4, "clique")
	late.CreationTimestamp = metav1.Now()
	c.Create(t, late, others)
	c.WaitRejected(t, "late")
	c.Create(
		t,
		schedulertest.Recreated(members[0]),
		schedulertest.Recreated(members[2]),
		schedulertest.Recreated(members[3]),
	)
	got := c.WaitBound(
		t,
		[]*corev1.Pod{
			schedulertest.Recreated(members[0]),
			schedulertest.Recreated(members[1]),
			schedulertest.Recreated(members[2]),
			schedulertest.Recreated(members[3]),
		},
	)
	for rank, node := range got {
		if want := schedulertest.NodeName(1, rank); node != want {
			t.Errorf("rank %d is on %s, want %s", rank, node, want)
		}
	}
}

// Lower-priority work in the clique is evicted before the gang gives up its nodes.
//
//	before  c0: 0 1 2 low    c1: . . . .
//	lost    c0: 0 - 2 low    c1: . . . .
//	after   c0: 0   2 1      c1: . . . .
func TestReplacement_PreemptsBeforeMoving(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("train", "clique", "c0-n0", "c0-n1", "c0-n2")
	schedulertest.SetPriority(group, members, 1_001_000)
	low, victims := schedulertest.RunningGang("low", "clique", "c0-n3")
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), group, low, members, victims)
	c.LoseNodes(t, members[1:2], "c0-n1")
	c.Create(t, schedulertest.Recreated(members[1]))
	if got := c.WaitBound(t, []*corev1.Pod{schedulertest.Recreated(members[1])}); got[0] != "c0-n3" {
		t.Errorf("rank 1 is on %s, want c0-n3", got[0])
	}
	if _, deleted := c.Evictions("train"); len(deleted) > 0 {
		t.Errorf("%v were evicted", deleted)
	}
}

// Nothing is evicted for nothing: where no clique holds the gang, its survivors stay, and the member returns with the
// node.
func TestReplacement_SurvivorsStayWithoutTarget(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	other, busy := schedulertest.RunningGang("other", "clique", "c1-n0")
	nodes := schedulertest.Cliques(2, 4)
	c := schedulertest.NewCluster(t, nodes, group, other, members, busy)
	c.LoseNodes(t, members[1:2], "c0-n1")
	c.Create(t, schedulertest.Recreated(members[1]))
	if why := c.WaitRejected(t, "train"); !strings.Contains(why, "clique") {
		t.Errorf("it waits for: %s", why)
	}
	time.Sleep(500 * time.Millisecond) // in which it would be evicted
	if _, deleted := c.Evictions("train"); len(deleted) > 0 {
		t.Fatalf("%v were evicted", deleted)
	}
	at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == "c0-n1" })
	back := nodes[at].DeepCopy()
	back.ResourceVersion, back.UID = "", types.UID(fmt.Sprint(back.Name, "-back"))
	if _, err := c.CoreV1().Nodes().Create(t.Context(), back, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := c.WaitBound(t, []*corev1.Pod{schedulertest.Recreated(members[1])}); got[0] != "c0-n1" {
		t.Errorf("rank 1 is on %s, want c0-n1", got[0])
	}
}

// A gang whose members nothing would create again does not move: its survivors stay, and the lost member waits.
func TestOnLoss_GoneLeavesSurvivorsRunning(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationOnLoss, topology.OnLossGone)
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), group, members)
	c.LoseNodes(t, members[1:2], "c0-n1")
	c.Create(t, schedulertest.Recreated(members[1]))
	c.WaitRejected(t, "train")
	time.Sleep(500 * time.Millisecond) // in which it would be evicted
	if _, deleted := c.Evictions("train"); len(deleted) > 0 {
		t.Errorf("%v were evicted", deleted)
	}
}
