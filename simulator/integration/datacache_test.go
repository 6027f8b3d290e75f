package integration_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// The initializer of the cache may make the calls that it needs, and no others: above all, it deletes no accounts.
// LeaderWorkerSets are not served here, so its calls about them get no further than past the roles.
func TestAccess_TheCacheInitializerDoesWhatItNeeds(t *testing.T) {
	const namespace, account = "default", "system:serviceaccount:default:kubeflow-trainer-cache-initializer"
	applyRendered(
		t,
		render.Default().With("dataCache.namespaces", []any{namespace}),
		func(o *unstructured.Unstructured) bool {
			return o.GetName() == "kubeflow-trainer-cache-initializer"
		},
	)
	allowed := map[string]bool{}
	for _, what := range []string{
		"get trainer.kubeflow.org/trainjobs", "update trainer.kubeflow.org/trainjobs/finalizers",
		"create leaderworkerset.x-k8s.io/leaderworkersets", "get leaderworkerset.x-k8s.io/leaderworkersets",
		"create /services", "create /serviceaccounts",
	} {
		allowed[what] = true
	}
	eventually(t, "the role counts", func() bool { return may(t, account, namespace, "create /serviceaccounts") })
	for _, resource := range []string{
		"trainer.kubeflow.org/trainjobs", "trainer.kubeflow.org/trainjobs/finalizers", "leaderworkerset.x-k8s.io/leaderworkersets",
		"/services", "/serviceaccounts", "/serviceaccounts/token", "/secrets", "/configmaps", "/pods",
	} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			what := verb + " " + resource
			if got := may(t, account, namespace, what); got != allowed[what] {
				t.Errorf("%s: allowed %t, want %t", what, got, allowed[what])
			}
		}
	}
	initializer := initializing(t, account, "cached")
	get := func(resource schema.GroupVersionResource, name string) {
		t.Helper()
		_, err := initializer.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		wantNotFound(t, err)
	}
	get(trainJobs, "none")
	get(leaderWorkerSets, "cached-cache")
	pods := map[string]any{"spec": map[string]any{"serviceAccountName": "cached-cache", "containers": []any{}}}
	// Whether the kind is served depends on the tests that ran before.
	set := cachePiece("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "cached-cache", "cached",
		map[string]any{"leaderWorkerTemplate": map[string]any{"workerTemplate": pods}})
	if _, err := initializer.Resource(leaderWorkerSets).
		Namespace(namespace).
		Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		wantNotFound(t, err)
	} else if err := shared.Dynamic.Resource(leaderWorkerSets).
		Namespace(namespace).
		Delete(t.Context(), "cached-cache", metav1.DeleteOptions{}); err != nil {
		wantNotFound(t, err) // its owner does not exist: the garbage collector may have been first
	}
	for name, piece := range cachePieces("cached") {
		client := shared.Dynamic.Resource(piece.resource).Namespace(namespace)
		theirs := initializer.Resource(piece.resource).Namespace(namespace)
		if _, err := theirs.Create(t.Context(), piece.object, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	}
}

// The policy restricts the role's permissions to the initializer's own job: no other job's Service is taken, and no
// account is created that is not the cache's.
func TestAccess_TheCacheInitializerKeepsToItsJob(t *testing.T) {
	const namespace, account = "default", "system:serviceaccount:default:kubeflow-trainer-cache-initializer"
	applyRendered(
		t,
		render.Default().With("dataCache.namespaces", []any{namespace}),
		func(o *unstructured.Unstructured) bool {
			return o.GetName() == "kubeflow-trainer-cache-initializer"
		},
	)
	eventually(t, "the role counts", func() bool { return may(t, account, namespace, "create /serviceaccounts") })
	for by, job := range map[string]string{"of another job": "mine", "of no job": ""} {
		initializer := initializing(t, account, job)
		for name, piece := range cachePieces("theirs") {
			_, err := initializer.Resource(piece.resource).
				Namespace(namespace).
				Create(t.Context(), piece.object, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the cache of its own TrainJob only") {
				t.Errorf("an initializer %s creates %s %s: %v", by, piece.object.GetKind(), name, err)
			}
		}
	}
	initializer := initializing(t, account, "mine")
	accounts := initializer.Resource(cachePieces("mine")["mine-cache"].resource).Namespace(namespace)
	for name, attack := range map[string]func() error{
		"deletes an account": func() error { return accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}) },
		"deletes its own account": func() error {
			return accounts.Delete(t.Context(), "mine-cache", metav1.DeleteOptions{})
		},
		"reads Secrets": func() error {
			_, err := initializer.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).
				Namespace(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"deletes a TrainJob": func() error {
			return initializer.Resource(trainJobs).Namespace(namespace).Delete(t.Context(), "theirs", metav1.DeleteOptions{})
		},
		"deletes another job's LeaderWorkerSet": func() error {
			return initializer.Resource(leaderWorkerSets).
				Namespace(namespace).Delete(t.Context(), "theirs-cache", metav1.DeleteOptions{})
		},
		"reads TrainJobs of another namespace": func() error {
			_, err := initializer.Resource(trainJobs).Namespace("kube-system").Get(t.Context(), "none", metav1.GetOptions{})
			return err
		},
	} {
		if err := attack(); !apierrors.IsForbidden(err) {
			t.Errorf("an initializer %s: %v", name, err)
		}
	}
}

var leaderWorkerSets = schema.GroupVersionResource{
	Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets",
}

// initializing is a client with the token of the pod of a job's initializer; of no pod for no job.
func initializing(t *testing.T, account, job string) dynamic.Interface {
	t.Helper()
	config := as(account)
	if job != "" {
		config.Impersonate.Extra = map[string][]string{
			"authentication.kubernetes.io/pod-name": {job + "-dataset-initializer-0-0-x2x4z"},
		}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// piece is an object of a cache.
type piece struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// cachePieces are the account and the Service of a job's cache, by their names.
func cachePieces(job string) map[string]piece {
	return map[string]piece{
		job + "-cache": {
			schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"},
			cachePiece("v1", "ServiceAccount", job+"-cache", job, nil),
		},
		job + "-cache-service": {
			schema.GroupVersionResource{Version: "v1", Resource: "services"},
			cachePiece("v1", "Service", job+"-cache-service", job,
				map[string]any{"ports": []any{map[string]any{"port": int64(50051)}}}),
		},
	}
}

// cachePiece is an object of a cache that says to belong to a TrainJob.
func cachePiece(version, kind, name, job string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "spec": spec,
		"metadata": map[string]any{
			"name": name,
			"ownerReferences": []any{
				map[string]any{
					"apiVersion": "trainer.kubeflow.org/v1alpha1",
					"kind":       "TrainJob",
					"name":       job,
					"uid":        "1",
					"controller": true,
				},
			},
		},
	}}
}
