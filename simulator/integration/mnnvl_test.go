package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/cluster/nvlink"
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

// connected waits until so many pods of a job's attempt run in one clique, on nodes that are labeled for its domain, and
// returns the domain.
func connected(t *testing.T, job, attempt string, count int) types.UID {
	t.Helper()
	var domain types.UID
	missing := ""
	defer func() {
		if t.Failed() {
			t.Log(missing)
		}
	}()
	within(t, 40*time.Second, "the gang of "+job, func() bool {
		domain = domainOf(t, job)
		missing = disconnected(t, podsOf(t.Context(), t, namespaceOf(t), job), attempt, labeledFor(t, domain), count)
		return missing == "" && domain != ""
	})
	return domain
}

// disconnected is what is missing for so many pods to train by NVLink.
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

// disbanded waits until a domain has gone, and fails the test if a pod of its job is left then.
func disbanded(t *testing.T, job string, domain types.UID) {
	t.Helper()
	within(t, 30*time.Second, "the end of the domain of "+job, func() bool {
		// The pods are looked at first: those that are there now were there before the domain was found to be gone.
		running := 0
		for _, pod := range podsOf(t.Context(), t, namespaceOf(t), job) {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		deleted := deletionOf(t, job, domain)
		if running > 0 && deleted {
			t.Fatalf("%d pods run, and their domain is on its way out", running)
		}
		return deleted && domainOf(t, job) != domain && len(labeledFor(t, domain)) == 0
	})
}

// deletionOf reports whether a domain is on its way out, or gone.
func deletionOf(t *testing.T, job string, domain types.UID) bool {
	t.Helper()
	found, err := shared.Dynamic.Resource(nvlink.Resource()).Namespace(namespaceOf(t)).
		Get(t.Context(), job, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil || found.GetUID() != domain || found.GetDeletionTimestamp() != nil
}

// The whole life of a ComputeDomain: it is there before the pods and goes after them, also when somebody deletes the job; a
// restart keeps it, and a suspension does not.
func TestADomainLivesAsLongAsItsGang(t *testing.T) {
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

func TestGangsThatTrainByNVLinkComplete(t *testing.T) {
	jobs := play(t, 40*time.Second, mnnvlGang("wide", 8, "2s")+"---\n"+mnnvlGang("whole", 18, "2s"))
	inOneClique(t, jobs["wide"], 8)
	inOneClique(t, jobs["whole"], 18)
}

// A job that can never have what it requires is told so at once.
func TestNVLinkThatCannotBeIsRefused(t *testing.T) {
	answer := tryCreate(t, strings.ReplaceAll(mnnvlGang("wider", 19, "2s"), "NAMESPACE", "default"))
	if answer.code < 400 || !strings.Contains(answer.text, "19 pods need a node each, and a clique has at most 18") {
		t.Errorf("%d %s, want a refusal that names the size of a clique", answer.code, answer.text)
	}
}
