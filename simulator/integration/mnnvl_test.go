package integration_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// mnnvlGang is a torch TrainJob of whole trays that train by NVLink across nodes.
func mnnvlGang(name string, nodes int, runTime string) string {
	return strings.Replace(gang(name, nodes, runTime),
		"lockstep.dev/required-topology: nvidia.com/gpu.clique", "lockstep.dev/mnnvl: required", 1)
}

// domainOf is the UID of the ComputeDomain of a job; empty if there is none.
func domainOf(t *testing.T, job string) types.UID {
	t.Helper()
	found, err := shared.Dynamic.Resource(nvlink.Resource()).Namespace(namespaceOf(t)).
		Get(t.Context(), job, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return found.GetUID()
}

// labeledFor are the names of the nodes that are labeled for a domain.
func labeledFor(t *testing.T, domain types.UID) map[string]bool {
	t.Helper()
	list, err := shared.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{
		LabelSelector: nvlink.DomainLabel + "=" + string(domain),
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, node := range list.Items {
		names[node.Name] = true
	}
	return names
}

// connected waits until so many pods of a job's attempt run in one clique, on nodes that are labeled for its domain,
// and returns the domain.
func connected(t *testing.T, job, attempt string, count int) types.UID {
	t.Helper()
	var domain types.UID
	missing := ""
	defer func() {
		if t.Failed() {
			t.Log(missing)
		}
	}()
	testcluster.Within(t, 40*time.Second, "the gang of "+job, func() bool {
		domain = domainOf(t, job)
		missing = disconnected(t, podsOf(t.Context(), t, namespaceOf(t), job), attempt, labeledFor(t, domain), count)
		return missing == "" && domain != ""
	})
	return domain
}

// disconnected returns the missing condition for so many pods to train by NVLink.
func disconnected(t *testing.T, pods []corev1.Pod, attempt string, labeled map[string]bool, count int) string {
	t.Helper()
	if len(pods) != count {
		return fmt.Sprintf("%d pods, want %d", len(pods), count)
	}
	for _, pod := range pods {
		which := pod.Labels["jobset.sigs.k8s.io/restart-attempt"]
		switch {
		case pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() || which != attempt:
			return fmt.Sprintf(
				"pod %s of attempt %s is %s: %v",
				pod.Name,
				which,
				pod.Status.Phase,
				pod.Status.Conditions,
			)
		case !labeled[pod.Spec.NodeName]:
			return fmt.Sprintf("node %s of pod %s is not labeled; there are %v", pod.Spec.NodeName, pod.Name, labeled)
		case cliqueOf(pod.Spec.NodeName) != cliqueOf(pods[0].Spec.NodeName):
			return fmt.Sprintf("pods %s and %s are in two cliques", pods[0].Name, pod.Name)
		}
	}
	return ""
}

func suspendGang(t *testing.T, job string, suspend bool) {
	t.Helper()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace(namespaceOf(t)).Patch(t.Context(), job, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, suspend), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// disbanded waits until a domain is deleted, and fails the test if a pod of its job is left then.
func disbanded(t *testing.T, job string, domain types.UID) {
	t.Helper()
	testcluster.Within(t, 30*time.Second, "the end of the domain of "+job, func() bool {
		deleted := deletionOf(t, job, domain)
		running := 0 // listed after that: those that run now outlive the deletion's begin
		for _, pod := range podsOf(t.Context(), t, namespaceOf(t), job) {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running > 0 && deleted {
			t.Fatalf("%d pods run, and their domain is on its way out", running)
		}
		return deleted && domainOf(t, job) != domain && len(labeledFor(t, domain)) == 0
	})
}

// deletionOf reports whether a domain is being deleted, or deleted.
func deletionOf(t *testing.T, job string, domain types.UID) bool {
	t.Helper()
	found, err := shared.Dynamic.Resource(nvlink.Resource()).Namespace(namespaceOf(t)).
		Get(t.Context(), job, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil || found.GetUID() != domain || found.GetDeletionTimestamp() != nil
}

// The whole life of a ComputeDomain: it is created before the pods and deleted after them, also when a user deletes the
// job; a restart retains it, and a suspension does not.
func TestComputeDomain_LivesAsLongAsItsGang(t *testing.T) {
	submit(t, mnnvlGang("wide", 8, "10m"))
	first := connected(t, "wide", "0", 8)
	suspendGang(t, "wide", true)
	disbanded(t, "wide", first)
	suspendGang(t, "wide", false)
	second := connected(t, "wide", "0", 8)
	if second == first {
		t.Error("the resumed gang has the domain of before")
	}
	evict(t, podsOf(t.Context(), t, namespaceOf(t), "wide"))
	if third := connected(t, "wide", "1", 8); third != second {
		t.Errorf("the gang that started again has domain %s, before it had %s", third, second)
	}
	err := shared.Dynamic.Resource(trainJobs).
		Namespace(namespaceOf(t)).
		Delete(t.Context(), "wide", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	disbanded(t, "wide", second)
}

func TestNVLink_GangsComplete(t *testing.T) {
	jobs := play(t, 40*time.Second, mnnvlGang("wide", 8, "2s")+"---\n"+mnnvlGang("whole", 18, "2s"))
	inOneClique(t, jobs["wide"], 8)
	inOneClique(t, jobs["whole"], 18)
}

// A job with a requirement that can never be met is refused at once.
func TestNVLink_ImpossibleGangIsRefused(t *testing.T) {
	answer := tryCreate(t, strings.ReplaceAll(mnnvlGang("wider", 19, "2s"), "NAMESPACE", "default"))
	if answer.code < 400 || !strings.Contains(answer.text, "19 pods need a node each, and a clique has at most 18") {
		t.Errorf("%d %s, want a refusal that names the size of a clique", answer.code, answer.text)
	}
}

// labelNode sets a label of a node, or removes it if the value is empty. It returns the function that undoes that.
func labelNode(t *testing.T, name, key, value string) (undo func()) {
	t.Helper()
	nodes := shared.Client.CoreV1().Nodes()
	set := func(value string) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
		if value == "" {
			patch = fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, key)
		}
		_, err := nodes.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set(value)
	return func() { set(node.Labels[key]) }
}

// racks are the names of the trays of every rack, in order.
func racks() [][]string {
	byClique := map[string][]string{}
	for _, node := range machines.Nodes {
		if of := node.Labels[clique]; of != "" {
			byClique[of] = append(byClique[of], node.Name)
		}
	}
	all := slices.Collect(maps.Values(byClique))
	for _, trays := range all {
		slices.Sort(trays)
	}
	slices.SortFunc(all, slices.Compare)
	return all
}

// why returns the reason of the wait on the PodGroup of a job.
func why(t *testing.T, job string) string {
	t.Helper()
	group, err := shared.Client.SchedulingV1beta1().
		PodGroups(namespaceOf(t)).
		Get(t.Context(), job, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, condition := range group.Status.Conditions {
		if condition.Type == "lockstep.dev/Waiting" && condition.Status == metav1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// All racks are full; the gangs end, and others take their places at once, on nodes that the driver has not let go of
// yet. None of their pods is refused by a node.
func TestComputeDomain_NodesAreReused(t *testing.T) {
	var yaml []string
	for i := range 8 {
		yaml = append(yaml, mnnvlGang(fmt.Sprintf("gang-%d", i), 18, "1s"))
	}
	for name, job := range play(t, 90*time.Second, strings.Join(yaml, "---\n")) {
		inOneClique(t, job, 18)
		if t.Failed() {
			t.Logf("%s: %s", name, job.Reason)
		}
	}
	events, err := shared.Client.CoreV1().Events(namespaceOf(t)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == "FailedPrepareDynamicResources" {
			t.Errorf("pod %s was refused by its node: %s", event.InvolvedObject.Name, event.Message)
		}
	}
}

// Every rack is divided into two partitions of nine. A gang of nine fits, one of ten never does, and its status says
// so; when a rack is whole again it starts.
func TestNVLink_RackPartitionsAreCliques(t *testing.T) {
	var undo []func()
	second := map[string]bool{}
	for rack, trays := range racks() {
		for _, name := range trays[9:] {
			undo = append(undo, labelNode(t, name, clique, fmt.Sprintf("rack-%d.2", rack)))
			second[name] = true
		}
	}
	whole := func() {
		for _, do := range undo {
			do()
		}
		undo = nil
	}
	defer func() { whole() }()
	submit(t, mnnvlGang("nine", 9, "10m"))
	connected(t, "nine", "0", 9)
	half := map[bool]int{}
	for _, pod := range podsOf(t.Context(), t, namespaceOf(t), "nine") {
		half[second[pod.Spec.NodeName]]++
	}
	if len(half) != 1 {
		t.Errorf("the gang of nine is in both partitions: %v", half)
	}
	submitMore(t, mnnvlGang("ten", 10, "10m"))
	eventually(t, "an explanation", func() bool {
		return strings.Contains(why(t, "ten"), "9 of 10") && strings.Contains(why(t, "ten"), "not fit an empty cluster")
	})
	whole()
	connected(t, "ten", "0", 10)
}

// A node loses its clique while a gang runs. The gang continues; a new one that needs all of the rack does not start
// there, until the label is back.
func TestNVLink_NodeWithoutCliqueIsNotUsed(t *testing.T) {
	var undo []func()
	for _, trays := range racks() {
		undo = append(undo, labelNode(t, trays[17], clique, ""))
	}
	back := func() {
		for _, do := range undo {
			do()
		}
		undo = nil
	}
	defer func() { back() }()
	submit(t, mnnvlGang("whole", 18, "10m"))
	eventually(t, "an explanation", func() bool { return strings.Contains(why(t, "whole"), "17 of 18") })
	undo[0]()
	connected(t, "whole", "0", 18)
	again := labelNode(t, racks()[0][3], clique, "")
	defer again()
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		for _, pod := range podsOf(t.Context(), t, namespaceOf(t), "whole") {
			if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				t.Fatalf("pod %s is %s since its node has no clique", pod.Name, pod.Status.Phase)
			}
		}
	}
}
