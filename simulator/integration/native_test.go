package integration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// forStock is a gang, as gang makes it, for the stock scheduler.
func forStock(name string, nodes int, runTime string) string {
	return strings.Replace(gang(name, nodes, runTime), "annotations:\n",
		"annotations:\n    lockstep.dev/scheduler: native\n", 1)
}

func groupOf(t *testing.T, name string) *schedulingv1beta1.PodGroup {
	t.Helper()
	group, err := shared.Client.SchedulingV1beta1().
		PodGroups(namespaceOf(t)).
		Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// The stock scheduler reads the same Workload and PodGroup as ours, and follows the node label that both name: eight of
// 72 trays would not be in one of four cliques at random.
func TestStockScheduler_PlacesTheSameGang(t *testing.T) {
	if offered() != probe.Full {
		t.Skip("without TopologyAwareWorkloadScheduling the API server drops what the stock scheduler reads")
	}
	namespace := namespaceOf(t)
	submitted := submitFiles(t, written(t, forStock("theirs", 8, "10m")+"---\n"+gang("ours", 8, "10m")))
	pods := newRunners(t, namespace, "theirs", 8, nil)
	members := slices.Concat(pods, newRunners(t, namespace, "ours", 8, nil))
	group, same := groupOf(t, "theirs"), groupOf(t, "ours").Spec.DeepCopy() // those of gangs that end ask for fewer
	shared.Succeed(t, members)
	jobs := shared.Watch(t, submitted, testcluster.Patience(30*time.Second))
	theirs := jobs["theirs"]
	if theirs.Outcome != summary.Complete || len(theirs.Ranks) != 8 {
		t.Fatalf("%s with %d ranks, want Complete with 8 (%s)", theirs.Outcome, len(theirs.Ranks), theirs.Reason)
	}
	for _, rank := range theirs.Ranks {
		if got, want := rank.Domains["clique"], theirs.Ranks[0].Domains["clique"]; got != want || got == "" {
			t.Errorf("rank %d is in clique %q, rank 0 in %q", rank.Rank, got, want)
		}
	}
	inOneClique(t, jobs["ours"], 8)
	for _, pod := range pods {
		eventually(t, "the Event that "+pod.Name+" was placed", func() bool {
			events, err := shared.Client.CoreV1().Events(pod.Namespace).List(t.Context(), metav1.ListOptions{
				FieldSelector: "involvedObject.name=" + pod.Name + ",reason=Scheduled",
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range events.Items {
				if by := event.ReportingController; by != stock {
					t.Fatalf("pod %s was placed by %s, want %s", pod.Name, by, stock)
				}
			}
			return len(events.Items) > 0
		})
	}

	same.WorkloadRef.WorkloadName = "theirs"
	if diff := cmp.Diff(*same, group.Spec); diff != "" {
		t.Errorf("the groups differ (-ours +theirs):\n%s", diff)
	}
	if c := group.Spec.SchedulingConstraints; c == nil || len(c.Topology) != 1 ||
		c.Topology[0].Key != "nvidia.com/gpu.clique" {
		t.Errorf("the group's constraints are %+v, want the clique", c)
	}
	leftAlone(t, group)
}

func TestStockScheduler_TooLargeGangStaysWhole(t *testing.T) {
	if offered() != probe.Full {
		t.Skip("without TopologyAwareWorkloadScheduling the API server drops what the stock scheduler reads")
	}
	// A clique has 18 trays.
	job := unplaced(t, "too-large", forStock("too-large", 19, "1s"), func(now summary.Job) bool {
		return len(now.Ranks) == 19
	})
	if job.Outcome != summary.Unplaced || len(job.Ranks) != 19 {
		t.Fatalf("%s with %d ranks, want Unplaced with 19", job.Outcome, len(job.Ranks))
	}
	for _, rank := range job.Ranks {
		if rank.Node != "" {
			t.Errorf("rank %d is on %s: the gang is half placed", rank.Rank, rank.Node)
		}
	}
}

// leftAlone checks that our scheduler has written nothing to a group that is not its own.
func leftAlone(t *testing.T, group *schedulingv1beta1.PodGroup) {
	t.Helper()
	for _, condition := range group.Status.Conditions {
		if strings.HasPrefix(condition.Type, "lockstep.dev/") {
			t.Errorf("our scheduler says %s of a group that is not its own: %s", condition.Type, condition.Message)
		}
	}
}
