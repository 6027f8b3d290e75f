package coexistence_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// burst is a pool without nodes.
const burst = "nodeSelector: {pool: burst}"

// As shipped, waiting gangs look to node autoscalers like any waiting pods. With mode none autoscalers see nothing of
// them, and of pods in no gang the same as before.
func TestDemand_ReasonOfMembers(t *testing.T) {
	t.Run("pods", func(t *testing.T) { reasons(t, corev1.PodReasonUnschedulable) })
	t.Run("none", func(t *testing.T) {
		install(t, render.Default().With("neighbors.demand.mode", "none"))
		reasons(t, "WaitingForGang")
	})
}

// reasons has a gang wait, and a pod in no gang, and compares the reasons of their condition PodScheduled.
func reasons(t *testing.T, ofMembers string) {
	t.Helper()
	makeNamespace(t)
	gang(t, "train", 3, burst)
	alone := strings.ReplaceAll(member("alone", 0, burst), ", labels: {lockstep.dev/pod-group: alone}", "")
	create(t, alone)
	for prefix, want := range map[string]string{"train": ofMembers, "alone": corev1.PodReasonUnschedulable} {
		testcluster.Within(t, time.Minute, "reason "+want+" of "+prefix, func() bool {
			for _, pod := range pods(t, prefix) {
				if scheduled(pod).Reason != want {
					return false
				}
			}
			return true
		})
	}
}

func scheduled(pod corev1.Pod) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition
		}
	}
	return corev1.PodCondition{}
}

// With mode gangs each waiting gang has one ProvisioningRequest for all of its members, and no member is Unschedulable.
// When the nodes are there the gang starts, and its request and the templates are deleted.
func TestDemand_OneRequestForEachGang(t *testing.T) {
	serveRequests(t)
	install(t, render.Default().With("neighbors.demand.mode", "gangs"))
	makeNamespace(t)
	gang(t, "large", 3, burst)
	gang(t, "small", 2, burst)
	testcluster.Within(t, time.Minute, "two requests", func() bool { return len(requested(t)) == 2 })
	first := requested(t)
	if first["large"].count != 3 || first["small"].count != 2 {
		t.Errorf("the requests are for %+v", first)
	}
	documented(t, map[string]string{"request": described(t, first["large"])})
	time.Sleep(15 * time.Second) // longer than a gang has to ask for the same
	for name, now := range requested(t) {
		if now != first[name] {
			t.Errorf("the request of %s was %+v, and is %+v", name, first[name], now)
		}
	}
	for _, pod := range pods(t, "") {
		if got := scheduled(pod).Reason; got == corev1.PodReasonUnschedulable {
			t.Errorf("%s is %s", pod.Name, got)
		}
	}
	if text := templates(t); strings.Contains(text, "s3cret") || !strings.Contains(text, "pool: burst") {
		t.Errorf("the templates are\n%s", text)
	}
	for _, node := range []string{"burst-0", "burst-1"} {
		addNode(t, node, "8", map[string]string{"pool": "burst"})
	}
	testcluster.Within(t, time.Minute, "small runs, and only large asks", func() bool {
		asks := requested(t)
		return running(t, "small") == 2 && len(asks) == 1 && asks["large"] == first["large"]
	})
	for _, name := range []string{"burst-2", "burst-3", "burst-4"} {
		addNode(t, name, "8", map[string]string{"pool": "burst"})
	}
	testcluster.Within(
		t,
		time.Minute,
		"large runs, and nothing asks",
		func() bool { return running(t, "large") == 3 && len(requested(t)) == 0 },
	)
	testcluster.Within(t, time.Minute, "no templates are left", func() bool { return templates(t) == "" })
}

// request is a ProvisioningRequest.
type request struct {
	name, uid string
	// count is the number of its pods, in one set.
	count int64
}

// requested returns the ProvisioningRequests of the test's namespace by the PodGroup that owns each.
func requested(t *testing.T) map[string]request {
	t.Helper()
	list, err := shared.Dynamic.Resource(provisioning()).
		Namespace(namespaceOf(t)).
		List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]request{}
	for _, item := range list.Items {
		sets, _, _ := unstructured.NestedSlice(item.Object, "spec", "podSets")
		set, _ := sets[0].(map[string]any)
		count, _ := set["count"].(int64)
		owner := item.GetOwnerReferences()[0].Name
		if before, twice := found[owner]; twice {
			t.Errorf("%s has two requests, %s and %s", owner, before.name, item.GetName())
		}
		found[owner] = request{item.GetName(), string(item.GetUID()), count}
	}
	return found
}

// described returns a request as a page shows it: its digest, which has the UID of the PodGroup in it, is always the
// same.
func described(t *testing.T, of request) string {
	t.Helper()
	object, err := shared.Dynamic.Resource(provisioning()).
		Namespace(namespaceOf(t)).
		Get(t.Context(), of.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner := object.GetOwnerReferences()[0]
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "spec": object.Object["spec"],
		"metadata": map[string]any{
			"name":            of.name,
			"ownerReferences": []any{map[string]any{"kind": owner.Kind, "name": owner.Name}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	digest := of.name[strings.LastIndex(of.name, "-")+1:]
	return strings.ReplaceAll(string(content), digest, "0123456789")
}

// templates returns the PodTemplates of the test's namespace as YAML, empty for none.
func templates(t *testing.T) string {
	t.Helper()
	list, err := shared.Client.CoreV1().PodTemplates(namespaceOf(t)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, item := range list.Items {
		content, err := yaml.Marshal(item.Template)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	return text.String()
}

func provisioning() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group:    "autoscaling.x-k8s.io",
		Version:  "v1beta1",
		Resource: "provisioningrequests",
	}
}

// serveRequests installs cluster-autoscaler's definition of ProvisioningRequests.
func serveRequests(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile("testdata/provisioningrequests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.ApplyAll(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
}

// addNode adds a node with so many GPUs, until the test ends.
func addNode(t *testing.T, name, accelerators string, labels map[string]string) {
	t.Helper()
	node := shared.Machines.Nodes[0].DeepCopy()
	node.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: labels, Annotations: node.Annotations}
	node.Labels[corev1.LabelHostname] = name
	for _, of := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		of["nvidia.com/gpu"] = resource.MustParse(accelerators)
	}
	ctx := context.WithoutCancel(t.Context())
	if _, err := shared.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := shared.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}
