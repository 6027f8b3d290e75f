package datacache_test

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// An initializer that is taken over, with the token of its pod as a kubelet requests it, deletes nothing, reads no
// Secret, and creates nothing of another job's cache, nor pods of another account or with a Secret.
func TestAttack_ByTheInitializerOfACache(t *testing.T) {
	sets.start(t)
	const job = "taken-over"
	variables := small()
	variables["METADATA_LOC"] = "file:///tmp/warehouse/absent.metadata.json" // so that it waits
	submit(t, sample(t, job, 1, variables))
	within(t, time.Minute, "the LeaderWorkerSet", func() bool {
		_, err := shared.Dynamic.Resource(setsOf).
			Namespace(namespace).
			Get(t.Context(), job+"-cache", metav1.GetOptions{})
		return err == nil
	})
	config := taken(t, step(t, job, "dataset-initializer")[0])
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	anything, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	own, err := anything.Resource(setsOf).Namespace(namespace).Get(t.Context(), job+"-cache", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("it does not read its own LeaderWorkerSet: %v", err)
	}
	set := func(change func(pod map[string]any)) error {
		copied := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": own.GetAPIVersion(), "kind": own.GetKind(), "spec": own.DeepCopy().Object["spec"],
			"metadata": map[string]any{"name": job + "-cache"},
		}}
		copied.SetOwnerReferences(own.GetOwnerReferences())
		pod, _, err := unstructured.NestedMap(copied.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "spec")
		if err != nil {
			t.Fatal(err)
		}
		change(pod)
		err = unstructured.SetNestedMap(copied.Object, pod, "spec", "leaderWorkerTemplate", "workerTemplate", "spec")
		if err != nil {
			t.Fatal(err)
		}
		_, err = anything.Resource(setsOf).Namespace(namespace).Create(t.Context(), copied, metav1.CreateOptions{})
		return err
	}
	core := client.CoreV1()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "other-cache-service", OwnerReferences: own.GetOwnerReferences()},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 50051}}},
	}
	for name, attack := range map[string]func() error{
		"deletes the account of its namespace": func() error {
			return core.ServiceAccounts(namespace).Delete(t.Context(), "default", metav1.DeleteOptions{})
		},
		"deletes the account of its cache": func() error {
			return core.ServiceAccounts(namespace).Delete(t.Context(), job+"-cache", metav1.DeleteOptions{})
		},
		"requests a token of another account": func() error {
			_, err := core.ServiceAccounts(namespace).
				CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		},
		"reads Secrets": func() error {
			_, err := core.Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"deletes its TrainJob": func() error {
			return anything.Resource(trainJobs).Namespace(namespace).Delete(t.Context(), job, metav1.DeleteOptions{})
		},
		"creates the Service of another job's cache": func() error {
			_, err := core.Services(namespace).Create(t.Context(), service, metav1.CreateOptions{})
			return err
		},
		"runs pods under another account": func() error {
			return set(func(pod map[string]any) { pod["serviceAccountName"] = "default" })
		},
		"runs pods with a Secret": func() error {
			return set(func(pod map[string]any) {
				pod["volumes"] = []any{map[string]any{"name": "s", "secret": map[string]any{"secretName": "s"}}}
			})
		},
	} {
		err := attack()
		if !apierrors.IsForbidden(err) {
			t.Errorf("the initializer %s: %v", name, err)
			continue
		}
		t.Logf("%s: %s", name, err)
	}
	// Only changes are refused: an unchanged copy passes the policy, and exists already.
	if err := set(func(map[string]any) {}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the initializer creates its LeaderWorkerSet again: %v", err)
	}
}

// taken is the API server as a pod reaches it by its token.
func taken(t *testing.T, pod corev1.Pod) *rest.Config {
	t.Helper()
	token, err := shared.Client.CoreV1().
		ServiceAccounts(namespace).
		CreateToken(t.Context(), pod.Spec.ServiceAccountName,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				BoundObjectRef: &authenticationv1.BoundObjectReference{
					Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
				},
			}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(pod.Spec.ServiceAccountName, "cache-initializer") {
		t.Fatalf("%s is of account %s", pod.Name, pod.Spec.ServiceAccountName)
	}
	config := rest.AnonymousClientConfig(shared.Admin)
	config.BearerToken = token.Status.Token
	return config
}
