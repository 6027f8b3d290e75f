package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
)

// A snapshot has as many objects of each kind as the API server lists, and lists the other kinds as not served.
func TestSnapshot_HasWhatTheServerHas(t *testing.T) {
	submit(t, gang("running", 4, "10m"))
	file := filepath.Join(t.TempDir(), "cluster.snapshot.json.gz")
	var snapshot capture.Snapshot
	// The cluster runs meanwhile, so its lists may be newer than the snapshot.
	eventually(t, "a snapshot that is as the server's lists, with a gang that is placed", func() bool {
		snapshot = takeSnapshot(t, file)
		differs := differences(t, snapshot.Manifest)
		t.Logf("%d members have a node; differs: %s", members(snapshot), differs)
		return differs == "" && members(snapshot) == 4
	})
	if len(snapshot.Nodes) != len(machines.Nodes) || !strings.HasPrefix(snapshot.Manifest.Server, "v"+*release+".") {
		t.Errorf("%d nodes of a %s, want %d", len(snapshot.Nodes), snapshot.Manifest.Server, len(machines.Nodes))
	}
	if len(snapshot.ClusterTrainingRuntimes) == 0 || len(snapshot.TrainJobs) == 0 ||
		(len(snapshot.Workloads) == 0) != (offered() == probe.Resources) {
		t.Errorf("%d runtimes, %d TrainJobs, %d workloads",
			len(snapshot.ClusterTrainingRuntimes), len(snapshot.TrainJobs), len(snapshot.Workloads))
	}

	anonymous := takeSnapshot(t, file, "--anonymize")
	if len(anonymous.Nodes) != len(machines.Nodes) || !anonymous.Manifest.Anonymized {
		t.Errorf("%d nodes are anonymous, want %d", len(anonymous.Nodes), len(machines.Nodes))
	}
	if got := members(anonymous); got != 4 {
		t.Errorf("%d anonymous members have an anonymous group and node, want 4", got)
	}
	var text bytes.Buffer
	var stderr strings.Builder
	if code := cli.Run(t.Context(), []string{"snapshot", "--kubeconfig", shared.Kubeconfig(), "--anonymize", "-o", "-"},
		cli.Environment{Out: &text, Err: &stderr, Clock: clock.RealClock{}}); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if bytes.Contains(text.Bytes(), []byte(namespaceOf(t))) {
		t.Errorf("namespace %s is named in an anonymous snapshot", namespaceOf(t))
	}
	for _, node := range machines.Nodes {
		if bytes.Contains(text.Bytes(), []byte(node.Name)) {
			t.Errorf("node %s is named in an anonymous snapshot", node.Name)
		}
	}
}

// members counts the pods of gangs that are on a node. Both gang and node have to be in the snapshot.
func members(snapshot capture.Snapshot) int {
	count := 0
	for _, pod := range snapshot.Pods {
		there := slices.ContainsFunc(snapshot.Nodes, func(n *corev1.Node) bool { return n.Name == pod.Spec.NodeName })
		grouped := slices.ContainsFunc(snapshot.PodGroups, func(g *schedulingv1beta1.PodGroup) bool {
			return pod.Spec.SchedulingGroup != nil && *pod.Spec.SchedulingGroup.PodGroupName == g.Name &&
				pod.Namespace == g.Namespace
		})
		if there && grouped {
			count++
		}
	}
	return count
}

func takeSnapshot(t *testing.T, file string, flags ...string) capture.Snapshot {
	t.Helper()
	var stderr strings.Builder
	args := append([]string{"snapshot", "--kubeconfig", shared.Kubeconfig(), "-o", file}, flags...)
	code := cli.Run(t.Context(), args, cli.Environment{Out: io.Discard, Err: &stderr, Clock: clock.RealClock{}})
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	t.Log(stderr.String())
	snapshot, err := capture.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// differences names every kind whose number of objects differs between the API server and a manifest.
func differences(t *testing.T, manifest capture.Manifest) string {
	t.Helper()
	var differ []string
	for _, kind := range manifest.Kinds {
		resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
		if kind.Resource == gangapi.Plural { // a snapshot has them as the native ones
			resource = offered().API().Resource()
		}
		listed, err := shared.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			if kind.State != capture.Absent {
				differ = append(differ, kind.Resource+" are not served")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		live, ended := 0, 0
		for i := range listed.Items {
			phase, _, _ := unstructured.NestedString(listed.Items[i].Object, "status", "phase")
			if kind.Resource == "pods" && (phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)) {
				ended++
			} else {
				live++
			}
		}
		if kind.State != capture.Captured || kind.Count != live || kind.LeftOut != ended {
			differ = append(differ, fmt.Sprintf("%s: %+v, but %d live and %d ended", kind.Resource, kind, live, ended))
		}
	}
	return strings.Join(differ, "; ")
}
