package install_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/doctor"
)

// secretLimit is the largest size of a Secret, and with it of a release.
const secretLimit = 1 << 20

// The life of an installation: a gang starts, an upgrade with another version, other values and an older CRD in the
// cluster disturbs none, a rollback neither, and after the removal nothing of the release is left while running pods
// continue.
func TestTheChart_FromInstallToUninstall(t *testing.T) {
	native := *mode != string(probe.Resources)
	blocks := map[string]string{}
	examine(t, blocks, "before")
	if seen := examined(t); seen.Unserved == native || seen.TrainerCRDs != "" || !seen.JobSet.Served ||
		len(
			seen.Lockstep.Deployments,
		) > 0 || len(seen.Denied) > 0 || len(seen.Levels) == 0 || seen.Accelerators["nvidia.com/gpu"] == 0 {
		t.Errorf("before the installation the doctor sees %+v", seen)
	}
	if _, err := install(
		t,
		packed(t, "v1.0.0"),
		nil,
	); err == nil ||
		!strings.Contains(err.Error(), "set jobset.install=false") {
		t.Errorf("beside a JobSet it is installed with another: %v", err)
	}
	first, err := install(t, packed(t, "v1.0.0"), values(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ran := hooks(first, release.HookPreInstall); len(ran) > 0 {
		t.Errorf("an installation into an empty cluster ran %v", ran)
	}
	fitsItsSecret(t)
	if seen := examined(t); seen.Webhook.Refused ||
		!strings.Contains(seen.Webhook.Error, "failed to call webhook") {
		t.Errorf("while no webhook answers the doctor hears %+v", seen.Webhook)
	}
	runInstalled(t)
	if seen := examined(t); seen.Unserved || !seen.Webhook.Refused || len(seen.Lockstep.Deployments) != 2 ||
		seen.TrainerCRDs == "kubeflow" {
		t.Errorf("after the installation the doctor sees %+v", seen)
	}
	examine(t, blocks, "after")
	page.Page{
		File:   "docs/doctor.md",
		Marker: "make test-full",
		Write:  *write,
		Mend: fmt.Sprintf(
			"go test ./simulator/integration/install -args -write -kubernetes %s -mode %s",
			*minor,
			*mode,
		),
	}.Has(t, blocks)
	submit(t, "running", 8, "10m")
	eventually(t, "the first gang", func() bool { return len(podsOf(t, "running", corev1.PodRunning)) == 8 })
	submit(t, "waiting", 72, "1s")
	eventually(t, "the gang that waits", func() bool { return len(podsOf(t, "waiting", corev1.PodPending)) == 72 })
	before := podsOf(t, "", "")

	age(t, "trainjobs.trainer.kubeflow.org")
	second := upgrade(t, packed(t, "v1.1.0"), values(map[string]any{
		"manager": map[string]any{"replicas": 3},
		"scheduler": map[string]any{"aliases": []any{alias}, "pluginArgs": map[string]any{
			"GangPermit": map[string]any{
				"grace": "90s",
			},
			"GangPlacement": map[string]any{"dialects": dialectsOfThePage(t)},
		}},
	}))
	if ran := hooks(second, release.HookPreUpgrade); !slices.Equal(ran, []string{"lockstep-crds"}) {
		t.Errorf("an upgrade over an older CRD ran %v", ran)
	}
	runInstalled(t)
	undisturbed(t, "the upgrade", before)
	deployed := read(t, apps("deployments"), render.Default().Namespace, "lockstep-controller")
	if replicas, _, _ := unstructured.NestedInt64(deployed.Object, "spec", "replicas"); replicas != 3 ||
		deployed.GetLabels()["app.kubernetes.io/version"] != "v1.1.0" {
		t.Errorf("after the upgrade there are %d replicas of %v", replicas, deployed.GetLabels())
	}

	crew(t)

	rollBack(t, 1)
	runInstalled(t)
	undisturbed(t, "the rollback", before)
	deployed = read(t, apps("deployments"), render.Default().Namespace, "lockstep-controller")
	if replicas, _, _ := unstructured.NestedInt64(deployed.Object, "spec", "replicas"); replicas != 2 {
		t.Errorf("after the rollback there are %d replicas", replicas)
	}
	withdraw(t, "waiting") // or it holds the free nodes
	maps.DeleteFunc(before, func(_ string, is pod) bool { return is.phase == corev1.PodPending })
	submit(t, "after", 2, "1s")
	eventually(t, "a gang after the rollback", func() bool { return len(podsOf(t, "after", corev1.PodSucceeded)) == 2 })

	shared.StopInstalled(t.Context()) // Deployments are deleted before roles
	uninstall(t)
	undisturbed(t, "the removal", before)
	nothingLeft(t)
}

// examine runs lockstep doctor, and records its output if a page shows that.
func examine(t *testing.T, blocks map[string]string, when string) {
	t.Helper()
	var out, problems bytes.Buffer
	code := cli.Run(t.Context(), []string{"doctor", "--kubeconfig", shared.Kubeconfig()},
		cli.Environment{Out: &out, Err: &problems, Clock: clock.RealClock{}})
	text := page.Transcript("lockstep doctor", out.String())
	t.Logf("%s the installation:\n%s", when, text)
	if code != 0 || problems.Len() > 0 {
		t.Errorf("lockstep doctor exits with %d: %s", code, problems.String())
	}
	blocks[strings.Join([]string{"doctor", *minor, *mode, when}, "-")] = text
}

// examined are the answers of the cluster to the doctor's questions.
func examined(t *testing.T) doctor.Facts {
	t.Helper()
	client, err := kubernetes.NewForConfig(shared.Admin)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := doctor.Gather(t.Context(), client, shared.Dynamic)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// runInstalled runs the installed components, until they would start a job.
func runInstalled(t *testing.T) {
	t.Helper()
	if err := shared.RunInstalled(background(t)); err != nil {
		t.Fatal(err)
	}
}

// fitsItsSecret checks the size of the release in the cluster.
func fitsItsSecret(t *testing.T) {
	t.Helper()
	secrets, err := shared.Client.CoreV1().Secrets(render.Default().Namespace).
		List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil || len(secrets.Items) != 1 {
		t.Fatalf("%d releases (%v)", len(secrets.Items), err)
	}
	size := len(secrets.Items[0].Data["release"])
	t.Logf("the release is %d kB, of the %d kB that a Secret can have", size>>10, secretLimit>>10)
	if size > secretLimit/2 {
		t.Errorf(
			"the release takes %d bytes of the %d of a Secret: a few more runtimes, and it cannot be installed",
			size,
			secretLimit,
		)
	}
}

// submit creates a TrainJob of so many nodes that run so long, with a runtime of its own.
func submit(t *testing.T, name string, nodes int64, runTime string) {
	t.Helper()
	runtime := &unstructured.Unstructured{Object: testcluster.TorchRuntime(name, runTime)}
	runtime.SetAPIVersion("trainer.kubeflow.org/v1alpha1")
	runtime.SetNamespace("default")
	if _, err := shared.Create(t.Context(), runtime); err != nil {
		t.Fatal(err)
	}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec": map[string]any{
			"runtimeRef": map[string]any{"kind": "TrainingRuntime", "name": name},
			"trainer": map[string]any{
				"numNodes":         nodes,
				"resourcesPerNode": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "4"}},
			},
		},
	}}
	eventually(t, "the creation of "+name, func() bool {
		_, err := shared.Create(t.Context(), job.DeepCopy())
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

// withdraw deletes a TrainJob, and waits until its pods are deleted.
func withdraw(t *testing.T, name string) {
	t.Helper()
	jobs := shared.Dynamic.Resource(schema.GroupVersionResource{
		Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs",
	})
	if err := jobs.Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the pods of "+name, func() bool { return len(podsOf(t, name, "")) == 0 })
}

// pod is the part of a pod that must not change while it runs.
type pod struct {
	uid   types.UID
	phase corev1.PodPhase
	node  string
}

// podsOf are the pods of a job in a phase; empty for all.
func podsOf(t *testing.T, job string, phase corev1.PodPhase) map[string]pod {
	t.Helper()
	list, err := shared.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]pod{}
	for i := range list.Items {
		one := &list.Items[i]
		of := one.Labels["jobset.sigs.k8s.io/jobset-name"]
		if (job == "" || of == job) && (phase == "" || one.Status.Phase == phase) && one.DeletionTimestamp == nil {
			found[one.Name] = pod{one.UID, one.Status.Phase, one.Spec.NodeName}
		}
	}
	return found
}

// undisturbed checks that pods are as they were.
func undisturbed(t *testing.T, what string, before map[string]pod) {
	t.Helper()
	after := podsOf(t, "", "")
	for name, was := range before {
		if is := after[name]; is != was {
			t.Errorf("%s changed pod %s from %v to %v", what, name, was, is)
		}
	}
}

// age has a CRD say something else than that of the chart.
func age(t *testing.T, name string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"older"}}}`, chart.SchemaAnnotation)
	_, err := shared.Dynamic.Resource(definitions).
		Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// nothingLeft waits until the release leaves nothing in the cluster but CRDs and a namespace that others may use by
// now, and in its own namespace only the objects of every namespace, and the frozen copies of jobs. Helm deletes in the
// foreground and returns before the garbage collector has removed the objects.
func nothingLeft(t *testing.T) {
	t.Helper()
	var left []string
	t.Cleanup(func() {
		if len(left) > 0 {
			t.Logf("the removal left\n%s", strings.Join(left, "\n"))
		}
	})
	eventually(t, "the end of the release's objects", func() bool {
		left = leftovers(t)
		return len(left) == 0
	})
}

// leftovers lists the objects in the cluster that the removal of the release has to delete.
func leftovers(t *testing.T) []string {
	t.Helper()
	lists, err := shared.Client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			objects, err := shared.Dynamic.Resource(version.WithResource(resource.Name)).
				List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range objects.Items {
				if object := &objects.Items[i]; isLeft(object) {
					left = append(
						left,
						strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " "),
					)
				}
			}
		}
	}
	return left
}

func isLeft(object *unstructured.Unstructured) bool {
	kind, name := object.GetKind(), object.GetName()
	switch {
	case kind == "Namespace" && name == "kubeflow-system", kind == "FrozenTrainJob", kind == "Event":
		return false
	case object.GetLabels()["app.kubernetes.io/part-of"] == "lockstep":
		return true
	case object.GetNamespace() != render.Default().Namespace:
		return false
	}
	// Objects that Kubernetes creates in every namespace.
	return (kind != "ServiceAccount" || name != "default") && (kind != "ConfigMap" || name != "kube-root-ca.crt")
}

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

func read(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := shared.Dynamic.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	testcluster.Within(t, time.Minute, what, is)
}
