package integration_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// notTheirs is in the refusal of policy belongings.lockstep.dev.
const notTheirs = "only what belongs to a TrainJob"

// asController is access with the rights of the shipped controller.
func asController(t *testing.T) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	config := as(render.Default().Account())
	client, err := gangapi.Client(config, offered().API())
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, untyped
}

// unplayed returns a TrainJob that no controller reconciles, so that the garbage collector spares objects that name it
// as their owner.
func unplayed(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return kept(t, trainJobs, fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, namespace: %s}
spec: {suspend: true, managedBy: kueue.x-k8s.io/multikueue, runtimeRef: {name: torch-distributed}}
`, name, namespace))
}

func ownedBy(job *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{
			APIVersion: job.GetAPIVersion(),
			Kind:       job.GetKind(),
			Name:       job.GetName(),
			UID:        job.GetUID(),
			Controller: new(true),
		},
	}
}

// become are the kinds that a TrainJob becomes, with a suffix that the name of one may have.
func become() map[schema.GroupVersionResource][2]string {
	kinds := map[schema.GroupVersionResource][2]string{
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}: {
			"",
			`{kind: JobSet, spec: {suspend: true, replicatedJobs: [
  {name: node, template: {spec: {template: {spec: {serviceAccountName: admin, containers: [{name: node, image: none}]}}}}}]}}`,
		},
		offered().API().Resource(): {
			"-node",
			`{kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 1}}}}`,
		},
		nvlink.Resource(): {
			"",
			`{kind: ComputeDomain, spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: any}}}}`,
		},
	}
	if offered() != probe.Resources {
		kinds[workloads] = [2]string{"", `{kind: Workload, spec: {podGroupTemplates: [
  {name: node, schedulingPolicy: {gang: {minCount: 1}}}]}}`}
	}
	return kinds
}

// The controller's account makes, changes and deletes JobSets, groups and domains of TrainJobs only: the service
// accounts that pods may have do not make it an administrator of all namespaces.
func TestBelongings_NothingRunsWithoutATrainJob(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	_, controller := asController(t)
	train, other := unplayed(t, namespace, "train"), unplayed(t, namespace, "other")
	unknown := ownedBy(train)
	unknown[0].APIVersion = "evil.example/v1"
	weak := ownedBy(train)
	weak[0].Controller = nil
	for resource, kind := range become() {
		theirs, ours := shared.Dynamic.Resource(resource).
			Namespace(namespace),
			controller.Resource(resource).
				Namespace(namespace)
		object := func(name string, owners []metav1.OwnerReference) *unstructured.Unstructured {
			made := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(kind[1]), &made.Object); err != nil {
				t.Fatal(err)
			}
			made.SetAPIVersion(resource.GroupVersion().String())
			made.SetName(name)
			made.SetOwnerReferences(owners)
			return made
		}
		for name, owners := range map[string][]metav1.OwnerReference{
			"nobody": nil, "an unknown kind": unknown, "no controller": weak, "another job": ownedBy(other),
		} {
			t.Run(resource.Resource+" of "+name, func(t *testing.T) {
				_, err := ours.Create(t.Context(), object("train", owners), metav1.CreateOptions{})
				wantForbidden(t, err, notTheirs)
			})
		}
		t.Run(resource.Resource+" of a tenant", func(t *testing.T) {
			if _, err := theirs.Create(t.Context(), object("tenants", nil), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			claim := fmt.Sprintf(
				`{"metadata":{"ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",`+
					`"name":"tenants","uid":%q,"controller":true}]}}`,
				train.GetUID(),
			)
			for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, claim} {
				_, err := ours.Patch(t.Context(), "tenants", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				wantForbidden(t, err, notTheirs)
			}
			wantForbidden(t, ours.Delete(t.Context(), "tenants", metav1.DeleteOptions{}), notTheirs)
		})
		t.Run(resource.Resource+" of the job's", func(t *testing.T) {
			name := "train" + kind[0]
			if _, err := ours.Create(t.Context(), object(name, ownedBy(train)), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := ours.Patch(
				t.Context(),
				name,
				types.MergePatchType,
				[]byte(`{"metadata":{"ownerReferences":null}}`),
				metav1.PatchOptions{},
			)
			wantForbidden(t, err, notTheirs)
			if err := ours.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// The ConfigMaps by which clusters identify clients are none of a TrainJob's, and do not become its by a claim.
func TestBelongings_ConfigMapsOfTheClusterStay(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	controller, _ := asController(t)
	train, other := unplayed(t, namespace, "train"), unplayed(t, namespace, "other")
	claim := fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",`+
			`"name":"train","uid":%q,"controller":true}]}}`,
		train.GetUID(),
	)
	put := func(name string, owners []metav1.OwnerReference) {
		_, err := shared.Client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
			}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("train-runtime-snapshot", nil)
	put("other-runtime-snapshot", ownedBy(train))
	put("train-mpi-hostfile", ownedBy(other))
	for _, where := range [][2]string{
		{metav1.NamespaceSystem, "extension-apiserver-authentication"},
		{namespace, "train-runtime-snapshot"},
		{namespace, "other-runtime-snapshot"},
		{namespace, "train-mpi-hostfile"},
	} {
		t.Run(strings.Join(where[:], " "), func(t *testing.T) {
			configs := controller.CoreV1().ConfigMaps(where[0])
			for _, patch := range []string{`{"data":{"client-ca-file":"ours"}}`, claim} {
				_, err := configs.Patch(
					t.Context(),
					where[1],
					types.MergePatchType,
					[]byte(patch),
					metav1.PatchOptions{},
				)
				wantForbidden(t, err, notTheirs)
			}
			wantForbidden(t, configs.Delete(t.Context(), where[1], metav1.DeleteOptions{}), notTheirs)
		})
	}
}

// No Secret of the cluster is read by the controller's account, its own certificate apart; those of jobs it creates and
// deletes.
func TestBelongings_SecretsAreNotRead(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	controller, _ := asController(t)
	train := unplayed(t, namespace, "train")
	secrets := controller.CoreV1().Secrets(namespace)
	named := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: ownedBy(train)}}
	}
	for _, name := range []string{"train-mpi-ssh-auth", "train-mpi-ssh-auth-abc", "train-flux-curve-abc"} {
		if _, err := secrets.Create(t.Context(), named(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		wantForbidden(t, err, "cannot get resource")
		_, err = secrets.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":{}}`), metav1.PatchOptions{})
		wantForbidden(t, err, "cannot patch resource")
		if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"train", "train-abc", "train-mpi-ssh-authabc", "default-token"} {
		_, err := secrets.Create(t.Context(), named(name), metav1.CreateOptions{})
		wantForbidden(t, err, notTheirs)
	}
	_, err := controller.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	wantForbidden(t, err, "cannot list resource")
}

// The controller asks by a dry run of a deletion whether a Secret of a job's name is the job's own.
func TestBelongings_ForgedSecretsAreTold(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	controller, _ := asController(t)
	const own, forged = "train-mpi-ssh-auth-own", "train-mpi-ssh-auth-forged"
	owners := map[string][]metav1.OwnerReference{own: ownedBy(unplayed(t, namespace, "train")), forged: nil}
	for name, owner := range owners {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner}}
		_, err := shared.Client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	secrets, dry := controller.CoreV1().Secrets(namespace), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := secrets.Delete(t.Context(), own, dry); err != nil {
		t.Errorf("the job's own Secret: %v", err)
	}
	wantForbidden(t, secrets.Delete(t.Context(), forged, dry), notTheirs)
	wantForbidden(t, secrets.Delete(t.Context(), forged, metav1.DeleteOptions{}), notTheirs)
	for name := range owners {
		if _, err := shared.Client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("after the dry runs: %v", err)
		}
	}
}
