package integration_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// gang is a torch TrainJob of whole trays that must share one clique.
func gang(name string, nodes int, runTime string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: NAMESPACE
  annotations:
    lockstep.dev/required-topology: nvidia.com/gpu.clique
    simulator.lockstep.dev/run-time: %s
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: %d
    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}
`, name, runTime, nodes)
}

// inOneClique checks that every rank was placed, all in one clique, in the order of the nodes.
func inOneClique(t *testing.T, job summary.Job, ranks int) {
	t.Helper()
	if job.Outcome != summary.Complete || len(job.Ranks) != ranks {
		t.Fatalf(
			"%s: %s with %d ranks, want Complete with %d (%s)",
			job.Name,
			job.Outcome,
			len(job.Ranks),
			ranks,
			job.Reason,
		)
	}
	nodes := make([]string, ranks)
	for i, rank := range job.Ranks {
		nodes[i] = rank.Node
		if got, want := rank.Domains["clique"], job.Ranks[0].Domains["clique"]; got != want || got == "" {
			t.Errorf("%s: rank %d is in clique %q, rank 0 in %q", job.Name, i, got, want)
		}
	}
	if !slices.IsSorted(nodes) {
		t.Errorf("%s: the ranks are not in the order of the nodes: %v", job.Name, nodes)
	}
}

func TestSamples_Complete(t *testing.T) {
	jobs := playFiles(t, 30*time.Second, "../../manifests/samples")
	for _, job := range jobs {
		if job.Outcome != summary.Complete {
			t.Errorf("%s: %s (%s), want Complete", job.Name, job.Outcome, job.Reason)
		}
	}
	for name, framework := range map[string]string{
		"pytorch-distributed": "torch", "jax-pretrain": "jax", "xgboost-ranking": "xgboost", "deepspeed-finetune": "mpi",
		"plain-sweep": "plain",
	} {
		if got := jobs[name].Framework; got != framework {
			t.Errorf("%s is of %q, want %q", name, got, framework)
		}
	}
	inOneClique(t, jobs["torch-one-clique"], 16)
	for _, rank := range jobs["pytorch-distributed"].Ranks {
		if !strings.HasPrefix(rank.Node, "v100-") {
			t.Errorf("rank %d of pytorch-distributed is on %s: its patch asks for a V100 machine", rank.Rank, rank.Node)
		}
	}
}

func TestGangPlacement_TooLargeStaysWhole(t *testing.T) {
	// A clique has 18 trays.
	job := unplaced(t, "too-large", gang("too-large", 19, "1s"), func(now summary.Job) bool {
		return len(now.Ranks) == 19 && strings.Contains(now.Reason, "clique")
	})
	if job.Outcome != summary.Unplaced {
		t.Fatalf("outcome %s, want Unplaced", job.Outcome)
	}
	for _, part := range []string{"19", "18", "clique"} {
		if !strings.Contains(job.Reason, part) {
			t.Errorf("the reason does not mention %q: %s", part, job.Reason)
		}
	}
	if len(job.Ranks) != 19 {
		t.Errorf("%d ranks, want 19", len(job.Ranks))
	}
	for _, rank := range job.Ranks {
		if rank.Node != "" {
			t.Errorf("rank %d is on %s: the gang is half placed", rank.Rank, rank.Node)
		}
	}
}

func TestGangPlacement_QueuesForCliques(t *testing.T) {
	// Four cliques, six gangs that need one each: two wait until others have ended, and none is ever split.
	var yaml []string
	for i := range 6 {
		yaml = append(yaml, gang(fmt.Sprintf("gang-%d", i), 16, "3s"))
	}
	jobs := play(t, 30*time.Second, strings.Join(yaml, "---\n"))
	for i := range 6 {
		inOneClique(t, jobs[fmt.Sprintf("gang-%d", i)], 16)
	}
}

// A test of the reconciler checks that the group is written before the JobSet: instants of the API are too coarse for
// that.
func TestPodGroup_PodsJoinThatOfTheirJob(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, gang("ordered", 2, "10m"))
	newRunners(t, namespace, "ordered", 2, nil) // the group of a gang whose members end asks for fewer
	var group *schedulingv1beta1.PodGroup
	eventually(t, "the group's mark", func() bool {
		group = groupOf(t, "ordered")
		return slices.ContainsFunc(group.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == "PodGroupInitiallyScheduled" && c.Status == metav1.ConditionTrue
		})
	})
	if group.Spec.SchedulingPolicy.Gang == nil || group.Spec.SchedulingPolicy.Gang.MinCount != 2 {
		t.Errorf("the group's policy is %+v, want a gang of 2", group.Spec.SchedulingPolicy)
	}
	if owner := metav1.GetControllerOf(group); owner == nil || owner.Kind != "TrainJob" || owner.Name != "ordered" {
		t.Errorf("the group's owner is %+v, want the TrainJob", owner)
	}
	pods := podsOf(t.Context(), t, namespace, "ordered")
	if len(pods) != 2 {
		t.Errorf("%d pods, want 2", len(pods))
	}
	for _, pod := range pods {
		if pod.Spec.SchedulingGroup == nil || *pod.Spec.SchedulingGroup.PodGroupName != "ordered" {
			t.Errorf("pod %s is in group %v", pod.Name, pod.Spec.SchedulingGroup)
		}
	}
}

// Pods for other schedulers are served by the stock one, which runs because ours is a secondary scheduler.
func TestStockScheduler_ServesItsJobs(t *testing.T) {
	job := func(name, annotation string) string {
		return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: NAMESPACE
  annotations: {%s, simulator.lockstep.dev/run-time: 1s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`, name, annotation)
	}
	wanted := map[string]bool{"no-gang": false, "native": true}
	asked := []string{job("no-gang", `lockstep.dev/gang: "off"`), job("native", "lockstep.dev/scheduler: native")}
	if offered() == probe.Resources { // it does not read these groups
		delete(wanted, "native")
		asked = asked[:1]
	}
	jobs := play(t, 20*time.Second, strings.Join(asked, "---\n"))
	for name, grouped := range wanted {
		if jobs[name].Outcome != summary.Complete {
			t.Errorf("%s: %s (%s)", name, jobs[name].Outcome, jobs[name].Reason)
		}
		for _, pod := range podsOf(t.Context(), t, namespaceOf(t), name) {
			if pod.Spec.SchedulerName != "default-scheduler" || (pod.Spec.SchedulingGroup != nil) != grouped {
				t.Errorf("pod %s: scheduler %s, group %v", pod.Name, pod.Spec.SchedulerName, pod.Spec.SchedulingGroup)
			}
		}
	}
}

// A gang for a scheduler that does not read its group would start in parts. The refusal gives the alternative.
func TestStockScheduler_GangsRefusedInModeResources(t *testing.T) {
	if offered() != probe.Resources {
		t.Skip("the stock scheduler reads the groups of this mode")
	}
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	answer := tryCreate(t, strings.ReplaceAll(forStock("theirs", 2, "1s"), "NAMESPACE", namespace))
	if answer.code != http.StatusForbidden ||
		!strings.Contains(answer.text, "the stock scheduler does not read the PodGroups") {
		t.Errorf("%d %s, want a refusal that says who does not read what", answer.code, answer.text)
	}
}

// prepared is a gang of two nodes whose data is fetched first, by a pod that runs for as long as theirs.
const prepared = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: prepared, namespace: NAMESPACE, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec:
            template:
              spec:
                containers: [{name: dataset-initializer, image: initializer}]
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: torch, resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: prepared
  namespace: NAMESPACE
  annotations: {lockstep.dev/required-topology: nvidia.com/gpu.clique, simulator.lockstep.dev/run-time: 12s}
spec:
  runtimeRef: {name: prepared, kind: TrainingRuntime}
`

// An initializer runs before the gang and is not part of it: it has no rank, and while it runs the job is not given up.
func TestInitializer_RunsBeforeItsGang(t *testing.T) {
	job := play(t, 10*time.Second, prepared)["prepared"]
	inOneClique(t, job, 2)
	for _, rank := range job.Ranks {
		if !strings.HasPrefix(rank.Pod, "prepared-node-0-") {
			t.Errorf("rank %d is pod %s", rank.Rank, rank.Pod)
		}
	}
}
