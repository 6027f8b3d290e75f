package operators_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/live/operators"
)

// sparkSubmit is the name under which this test's executable stands in for Spark.
const sparkSubmit = "spark-submit"

// Pods of a SparkApplication are of the PodGroup that Spark operator makes, which has minMember 1: they start one by
// one, close together and in order. The operator is real. Spark, which is no Go, is not here: this test's executable
// creates the objects of spark-submit and the driver.
func TestSparkApplication_StartsOneByOne(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	submit := filepath.Join(t.TempDir(), "bin", sparkSubmit)
	if err := errors.Join(os.Mkdir(filepath.Dir(submit), 0o755), os.Symlink(self, submit)); err != nil {
		t.Fatal(err)
	}
	start(t, operators.SparkWith(submit))
	gang := create(t, kind{
		name: "sparkapplication", dialect: "scheduler-plugins", rank: number("spark-exec-id"), loss: gone,
		owners: owners(resource("sparkapplications", "v1beta2", "sparkoperator.k8s.io")),
	}, whole)
	gang.running(t, whole)
	gang.inOneClique(t)
	gang.says(t, 1)
	if order := gang.inOrder(t); order != "in order" {
		t.Errorf("its executors are %s", order)
	}
	gang.remove(t)
}

// submitted creates the pods that Spark would: the driver of its template, and as the driver the executors of theirs.
func submitted(ctx context.Context, arguments []string) error {
	settings := map[string]string{}
	for i, argument := range arguments {
		if key, value, found := strings.Cut(argument, "="); found && i > 0 && arguments[i-1] == "--conf" {
			settings[key] = value
		}
	}
	access, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	pods := client.CoreV1().Pods(settings["spark.kubernetes.namespace"])
	driver, err := sparkPod(settings, "driver")
	if err != nil {
		return err
	}
	driver.Name = settings["spark.kubernetes.driver.pod.name"]
	if driver, err = pods.Create(ctx, driver, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the driver: %w", err)
	}
	executors, err := strconv.Atoi(settings["spark.executor.instances"])
	if err != nil {
		return fmt.Errorf("reading the number of executors: %w", err)
	}
	for i := executors; i > 0; i-- {
		executor, err := sparkPod(settings, "executor")
		if err != nil {
			return err
		}
		executor.Name = fmt.Sprintf("%s-exec-%d", driver.Name, i)
		executor.Labels["spark-exec-id"] = strconv.Itoa(i)
		executor.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(driver, corev1.SchemeGroupVersion.WithKind("Pod")),
		}
		if _, err := pods.Create(ctx, executor, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating an executor: %w", err)
		}
	}
	return nil
}

// sparkPod reads the template of a role, and gives it the labels of the settings.
func sparkPod(settings map[string]string, role string) (*corev1.Pod, error) {
	content, err := os.ReadFile(settings["spark.kubernetes."+role+".podTemplateFile"])
	if err != nil {
		return nil, fmt.Errorf("reading the template of the %s: %w", role, err)
	}
	var template corev1.PodTemplateSpec
	if err := yaml.Unmarshal(content, &template); err != nil {
		return nil, fmt.Errorf("reading the template of the %s: %w", role, err)
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Labels = map[string]string{"spark-role": role}
	for key, value := range settings {
		if label, is := strings.CutPrefix(key, "spark.kubernetes."+role+".label."); is {
			pod.Labels[label] = value
		}
	}
	return pod, nil
}
