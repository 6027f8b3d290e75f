package integration_test

import (
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

const twoLogged = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: logged, namespace: NAMESPACE, annotations: {simulator.lockstep.dev/run-time: 8s}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`

// The log of a fake node's pod says that nothing runs there, while the pod runs and afterwards. Whoever follows it learns when the pod ends.
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
		t.Errorf("the log ended after %v, and the pod runs for 8 s", followed)
	}
	ended, err := shared.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || ended.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the pod is %s, %v, and its log has ended", ended.Status.Phase, err)
	}
	for _, follow := range []string{"--follow=false", "--follow=true"} {
		if out, err := kubectl(t, "logs", "-n", pod.Namespace, pod.Name, follow); err != nil || out != want {
			t.Errorf("kubectl logs %s: %q, %v", follow, out, err)
		}
	}
}

// kubectl runs kubectl with the administrator's access. It skips the rest of the test where nothing built it.
func kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root, err := cluster.SourceTree()
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath(filepath.Join(root, "bin", "kubectl"))
	if err != nil {
		t.Skip("no bin/kubectl; make bin/kubectl builds it")
	}
	command := exec.CommandContext(
		t.Context(),
		program,
		append([]string{"--kubeconfig", shared.Kubeconfig()}, args...)...)
	out, err := command.Output()
	return string(out), err
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

// Pods have what production gives them: their account's token, and the certificate by which they know the API server.
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
