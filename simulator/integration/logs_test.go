package integration_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const twoLogged = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: logged, namespace: NAMESPACE, annotations: {simulator.lockstep.dev/run-time: 20s}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`

// The log of a fake node's pod says that nothing runs there, while the pod runs and afterwards. A client that follows
// it sees the end of the pod.
func TestLogs_OfFakeNodes(t *testing.T) {
	submit(t, twoLogged)
	pod := waitForRank(t, "1")
	began := time.Now()
	stream, err := shared.Client.CoreV1().Pods(pod.Namespace).
		GetLogs(pod.Name, &corev1.PodLogOptions{Container: "node", Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	want := "simulated: rank 1 of node in job " + pod.Namespace + "/logged on node " + pod.Spec.NodeName +
		", container node: no program was started\n"
	if text, err := io.ReadAll(stream); err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	if followed := time.Since(began); followed < 2*time.Second {
		t.Errorf("the log ended after %v, and the pod runs for 20 s", followed)
	}
	ended, err := shared.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || ended.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the pod is %s, %v, and its log has ended", ended.Status.Phase, err)
	}
	for _, follow := range []bool{false, true} {
		text, err := shared.Client.CoreV1().Pods(pod.Namespace).
			GetLogs(pod.Name, &corev1.PodLogOptions{Follow: follow}).DoRaw(t.Context())
		if err != nil || string(text) != want {
			t.Errorf("the log of the pod that has ended, followed %t: %q, %v", follow, text, err)
		}
	}
}

// waitForRank returns the pod of a rank of job logged, once it runs.
func waitForRank(t *testing.T, rank string) corev1.Pod {
	t.Helper()
	var found corev1.Pod
	eventually(t, "rank "+rank+" runs", func() bool {
		pods := podsOf(t.Context(), t, namespaceOf(t), "logged")
		at := slices.IndexFunc(pods, func(pod corev1.Pod) bool {
			return pod.Annotations["batch.kubernetes.io/job-completion-index"] == rank &&
				pod.Status.Phase == corev1.PodRunning
		})
		if at >= 0 {
			found = pods[at]
		}
		return at >= 0
	})
	return found
}

// Pods have the same mounts as in production: their account's token, and the certificate by which they verify the API
// server.
func TestPods_HaveTokensAsInProduction(t *testing.T) {
	submit(t, twoLogged)
	pod := waitForRank(t, "0")
	if pod.Spec.ServiceAccountName != "default" {
		t.Errorf("the account is %q", pod.Spec.ServiceAccountName)
	}
	var sources []string
	for _, volume := range pod.Spec.Volumes {
		if !strings.HasPrefix(volume.Name, "kube-api-access-") || volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			switch {
			case source.ServiceAccountToken != nil:
				sources = append(sources, "token")
			case source.ConfigMap != nil:
				sources = append(sources, source.ConfigMap.Name)
			case source.DownwardAPI != nil:
				sources = append(sources, "namespace")
			}
		}
	}
	if want := []string{"token", "kube-root-ca.crt", "namespace"}; !slices.Equal(sources, want) {
		t.Errorf("the volume of the token has %v, want %v", sources, want)
	}
	roots, err := shared.Client.CoreV1().
		ConfigMaps(pod.Namespace).
		Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil || !strings.Contains(roots.Data["ca.crt"], "BEGIN CERTIFICATE") {
		t.Errorf("the root certificate of the namespace: %v, %v", roots.Data, err)
	}
}
