package devices_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

var trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}

// sample is a file with a sample as it ships, but that its pods run until the test ends them and, unless it is empty,
// with another size. The claim of a pod that has ended is deallocated and deleted.
func sample(t *testing.T, name, size string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../../manifests/samples-devices", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(content), "run-time: 5s", "run-time: 1h", 1)
	if size != "" {
		text = regexp.MustCompile(`numNodes: \d+`).ReplaceAllLiteralString(text, size)
	}
	return written(t, text)
}

// template is a claim template with some requests.
func template(name, devices string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec: {spec: {devices: {%s}}}
---
`, name, devices)
}

// gang returns a torch TrainJob whose nodes have a claim by that template each.
func gang(name string, nodes int, template, runTime string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s, annotations: {simulator.lockstep.dev/run-time: %s}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourceClaimsPerNode: [{name: devices, resourceClaimTemplateName: %s}]}
---
`, name, runTime, nodes, template)
}

// written is a file with some YAML.
func written(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// submit submits a file as lockstep up does. When the test ends, its objects are deleted and its devices are free.
func submit(t *testing.T, file string) []summary.JobObservation {
	t.Helper()
	jobs, submitted := shared.Submit(t, file)
	t.Cleanup(func() { discard(t, jobs) })
	return submitted
}

// play submits a file whose jobs have room, and returns the outcome of each job, by name.
func play(t *testing.T, file string) map[string]summary.Job {
	t.Helper()
	return shared.Watch(t, submit(t, file), time.Minute)
}

// unplaced submits a file and fails the test unless no member of a gang in it gets a node, for a reason with these
// words in it.
func unplaced(t *testing.T, file, name string, ranks int, words ...string) {
	t.Helper()
	submitted := submit(t, file)
	testcluster.Within(t, 30*time.Second, "the pods of "+name, func() bool { return len(podsOf(t, name)) == ranks })
	waiting(t, name, words...)
	job := shared.Watch(t, submitted, 3*time.Second)[name]
	if job.Outcome != summary.Unplaced || len(job.Ranks) != ranks {
		t.Errorf("%s: %s with %d ranks, want Unplaced with %d", job.Name, job.Outcome, len(job.Ranks), ranks)
	}
	for _, rank := range job.Ranks {
		if rank.Node != "" {
			t.Errorf("%s: rank %d is on %s: the gang is half placed", job.Name, rank.Rank, rank.Node)
		}
	}
	for _, word := range words {
		if !strings.Contains(job.Reason, word) {
			t.Errorf("%s: %q is not in its reason: %s", job.Name, word, job.Reason)
		}
	}
}

// discard deletes jobs and templates, and waits until the jobs' pods and claims are deleted.
func discard(t *testing.T, all workload.Workload) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	templates := schema.GroupVersionResource{
		Group:    "resource.k8s.io",
		Version:  "v1",
		Resource: "resourceclaimtemplates",
	}
	for _, one := range all.Objects {
		resource := templates
		if one.Object.GetKind() == workload.KindTrainJob {
			resource = trainJobs
		}
		err := shared.Dynamic.Resource(resource).Namespace(metav1.NamespaceDefault).
			Delete(ctx, one.Object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	for _, job := range all.TrainJobs() {
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return gone(ctx, job.Object.GetName())
		})
		if err != nil {
			t.Errorf("pods or claims of %s are still there after its deletion: %v", job, err)
		}
	}
}

// gone reports whether no pod and no claim of a job is left.
func gone(ctx context.Context, job string) (bool, error) {
	pods, err := shared.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job,
	})
	if err != nil {
		return false, err
	}
	claims, err := shared.Client.ResourceV1().ResourceClaims(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	ofJob := func(claim resourcev1.ResourceClaim) bool { return strings.HasPrefix(claim.Name, job+"-node-") }
	return len(pods.Items) == 0 && !slices.ContainsFunc(claims.Items, ofJob), nil
}

func podsOf(t *testing.T, job string) []corev1.Pod {
	t.Helper()
	return shared.PodsOf(t.Context(), t, metav1.NamespaceDefault, job)
}

// running waits until so many pods of a job run.
func running(t *testing.T, job string, count int) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	testcluster.Within(t, 30*time.Second, "the gang of "+job, func() bool {
		pods = podsOf(t, job)
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning {
				return false
			}
		}
		return len(pods) == count
	})
	return pods
}

// waiting waits until a job's group says that it waits for a reason with these words in it.
func waiting(t *testing.T, job string, words ...string) {
	t.Helper()
	said := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s says: %s", job, said)
		}
	}()
	testcluster.Within(t, 10*time.Second, "the reason of "+job, func() bool {
		group, err := shared.Client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).
			Get(t.Context(), job, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range group.Status.Conditions {
			if condition.Type == "lockstep.dev/Waiting" && condition.Status == metav1.ConditionTrue {
				said = condition.Message
			}
		}
		for _, word := range words {
			if !strings.Contains(said, word) {
				return false
			}
		}
		return said != ""
	})
}

// claimed are the devices of a pod by the names of their requests, as they are published.
func claimed(t *testing.T, pod *corev1.Pod, entry string) map[string][]resourcev1.Device {
	t.Helper()
	devices := map[string][]resourcev1.Device{}
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name != entry {
			continue
		}
		claim, err := shared.Client.ResourceV1().ResourceClaims(pod.Namespace).
			Get(t.Context(), *status.ResourceClaimName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Pool != pod.Spec.NodeName {
				t.Errorf("pod %s is on %s, and its device on %s", pod.Name, pod.Spec.NodeName, result.Pool)
			}
			devices[result.Request] = append(devices[result.Request], published(t, result))
		}
	}
	return devices
}

// published is the device that an allocation names.
func published(t *testing.T, result resourcev1.DeviceRequestAllocationResult) resourcev1.Device {
	t.Helper()
	for _, slice := range shared.Machines.Slices {
		for _, device := range slice.Spec.Devices {
			if slice.Spec.Driver == result.Driver && slice.Spec.Pool.Name == result.Pool &&
				device.Name == result.Device {
				return device
			}
		}
	}
	t.Fatalf("nobody publishes %s/%s/%s", result.Driver, result.Pool, result.Device)
	return resourcev1.Device{}
}
