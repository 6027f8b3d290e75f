package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/gangpreemption"
	"github.com/lockstep-project/lockstep/topology"
)

// again is a member as its Job makes it again: with its rank, and a name and UID of its own.
func again(lost *corev1.Pod) *corev1.Pod {
	pod := lost.DeepCopy()
	pod.Name += "-again"
	pod.UID, pod.ResourceVersion = types.UID(pod.Name), ""
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{}
	pod.CreationTimestamp = metav1.Now()
	return pod
}

// lose takes nodes away, and the pods on them.
func (c *cluster) lose(t *testing.T, pods []*corev1.Pod, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		if err := c.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.end(t, pods)
}

// on is a gang that runs, rank by rank, on these nodes.
func on(name, required string, nodes ...string) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := running(name, 0, nodes...)
	group.Annotations[topology.AnnotationRequiredTopology] = required
	since(group, members, time.Hour, 0)
	return group, members
}

// Two cliques of six in one rack. Segments of four: ranks 0-3 in one clique, 4-7 in the other; two nodes of each are spare.
//
//	before  c0: 0 1 2 3 . .     c1: 4 5 6 7 . .
//	lost    c0: 0 - - 3 . .     c1: 4 5 - 7 . .
//	after   c0: 0     3 1 2     c1: 4 5   7 6 .
func TestSeveralLostMembersComeBackByOnePlan(t *testing.T) {
	var nodes []string
	for rank := range 8 {
		nodes = append(nodes, nodeName(rank/4, rank%4))
	}
	group, members := on("train", "example.com/rack", nodes...)
	maps.Copy(group.Annotations, map[string]string{
		topology.AnnotationSegmentSize:     "4",
		topology.AnnotationSegmentTopology: "clique",
		topology.AnnotationSpares:          "2",
	})
	c := listed(t, slices.Concat(as(cliques(4, 6)...), []runtime.Object{group}, as(members...))...)
	lost := []*corev1.Pod{members[1], members[2], members[6]}
	c.lose(t, lost, nodes[1], nodes[2], nodes[6])
	// A Job makes its pods one by one. Those that are there first wait for the last one: only together they have one plan.
	c.add(t, again(lost[0]), again(lost[1]))
	time.Sleep(300 * time.Millisecond)
	for _, pod := range lost[:2] {
		if at := c.nodeOf(again(pod).Name); at != "" {
			t.Fatalf("%s got %s before all lost members were there", pod.Name, at)
		}
	}
	c.add(t, again(lost[2]))
	got := c.waitBound(t, []*corev1.Pod{again(lost[0]), again(lost[1]), again(lost[2])})
	if want := []string{"c0-n4", "c0-n5"}; !slices.Equal(got[:2], want) {
		t.Errorf("ranks 1 and 2 are on %v, want the spares of their segment's clique, %v", got[:2], want)
	}
	if !slices.Contains([]string{"c1-n4", "c1-n5"}, got[2]) {
		t.Errorf("rank 6 is on %s, want a spare of its segment's clique", got[2])
	}
}

// ended is what the API is asked to do to pods of a gang: for whom DisruptionTarget was set, with which reason, and who was
// deleted after that.
func (c *cluster) ended(gang string) (marked map[string]string, deleted []string) {
	marked = map[string]string{}
	for _, a := range c.Actions() {
		switch a := a.(type) {
		case clienttesting.PatchAction:
			text := string(a.GetPatch())
			if a.GetSubresource() == "status" && strings.Contains(text, string(corev1.DisruptionTarget)) {
				_, reason, _ := strings.Cut(text, `"reason":"`)
				marked[a.GetName()], _, _ = strings.Cut(reason, `"`)
			}
		case clienttesting.DeleteAction:
			name := a.GetName()
			if strings.HasPrefix(name, gang+"-") && marked[name] != "" {
				deleted = append(deleted, name)
			}
		}
	}
	slices.Sort(deleted)
	return marked, deleted
}

// gone waits until the pods are gone.
func (c *cluster) waitGone(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for _, pod := range pods {
		for {
			_, err := c.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is still there", pod.Name)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// The clique is full, so the lost member has no room in it; another clique holds all. The survivors leave as disrupted, and the
// other clique is theirs although a gang that came later waits for it.
//
//	before  c0: 0 1 2 3     c1: . . . .
//	lost    c0: 0 - 2 3     c1: . . . .    and "late" comes, which needs four
//	after   c0: .   . .     c1: 0 1 2 3
func TestGangMovesThatHasNoRoomForALostMember(t *testing.T) {
	group, members := on("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	c := listed(t, slices.Concat(as(cliques(2, 4)...), []runtime.Object{group}, as(members...))...)
	c.lose(t, members[1:2], "c0-n1")
	c.add(t, again(members[1]))
	survivors := []*corev1.Pod{members[0], members[2], members[3]}
	c.waitGone(t, survivors)
	marked, deleted := c.ended("train")
	if want := []string{"train-0", "train-2", "train-3"}; !slices.Equal(deleted, want) {
		t.Errorf("%v were marked and deleted, want %v", deleted, want)
	}
	for name, reason := range marked {
		if reason != gangpreemption.Moved {
			t.Errorf("%s left for %s", name, reason)
		}
	}
	late, others := gang("late", 4, "clique")
	late.CreationTimestamp = metav1.Now()
	c.add(t, late, others)
	c.waitRejected(t, "late")
	c.add(t, again(members[0]), again(members[2]), again(members[3]))
	got := c.waitBound(t, []*corev1.Pod{again(members[0]), again(members[1]), again(members[2]), again(members[3])})
	for rank, node := range got {
		if want := nodeName(1, rank); node != want {
			t.Errorf("rank %d is on %s, want %s", rank, node, want)
		}
	}
}

// Less important work in the clique goes before the gang gives up what it has.
//
//	before  c0: 0 1 2 low    c1: . . . .
//	lost    c0: 0 - 2 low    c1: . . . .
//	after   c0: 0   2 1      c1: . . . .
func TestLostMemberPreemptsBeforeItsGangMoves(t *testing.T) {
	group, members := on("train", "clique", "c0-n0", "c0-n1", "c0-n2")
	raise(group, members, 1000)
	low, victims := on("low", "clique", "c0-n3")
	c := listed(t, slices.Concat(as(cliques(2, 4)...), []runtime.Object{group, low}, as(members...), as(victims...))...)
	c.lose(t, members[1:2], "c0-n1")
	c.add(t, again(members[1]))
	if got := c.waitBound(t, []*corev1.Pod{again(members[1])}); got[0] != "c0-n3" {
		t.Errorf("rank 1 is on %s, want c0-n3", got[0])
	}
	if _, deleted := c.ended("train"); len(deleted) > 0 {
		t.Errorf("%v were evicted", deleted)
	}
}

// Nothing is evicted for nothing: where no clique holds the gang, its survivors stay, and the member comes back with the node.
func TestSurvivorsStayWhereNothingHoldsTheGang(t *testing.T) {
	group, members := on("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	other, busy := on("other", "clique", "c1-n0")
	nodes := cliques(2, 4)
	c := listed(t, slices.Concat(as(nodes...), []runtime.Object{group, other}, as(members...), as(busy...))...)
	c.lose(t, members[1:2], "c0-n1")
	c.add(t, again(members[1]))
	if why := c.waitRejected(t, "train"); !strings.Contains(why, "clique") {
		t.Errorf("it waits for: %s", why)
	}
	time.Sleep(500 * time.Millisecond) // in which it would be evicted
	if _, deleted := c.ended("train"); len(deleted) > 0 {
		t.Fatalf("%v were evicted", deleted)
	}
	at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == "c0-n1" })
	back := nodes[at].DeepCopy()
	back.ResourceVersion, back.UID = "", types.UID(fmt.Sprint(back.Name, "-back"))
	if _, err := c.CoreV1().Nodes().Create(t.Context(), back, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := c.waitBound(t, []*corev1.Pod{again(members[1])}); got[0] != "c0-n1" {
		t.Errorf("rank 1 is on %s, want c0-n1", got[0])
	}
}
