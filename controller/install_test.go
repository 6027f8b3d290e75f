package controller_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/controller"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// charted reads an object that the chart renders.
func charted(t *testing.T, release render.Release, kind, name string, into any) {
	t.Helper()
	rendered, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	found := rendered.Find(kind, name)
	if len(found) != 1 {
		t.Fatalf("the chart has %d objects %s %s", len(found), kind, name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, into); err != nil {
		t.Fatal(err)
	}
}

// deployedOptions are the options of the controller in the pods of its Deployment.
func deployedOptions(t *testing.T, release render.Release) config.Options {
	t.Helper()
	var deployment appsv1.Deployment
	var file corev1.ConfigMap
	charted(t, release, "Deployment", "lockstep-controller", &deployment)
	charted(t, release, "ConfigMap", "lockstep-controller", &file)
	container := deployment.Spec.Template.Spec.Containers[0]
	folder := t.TempDir()
	for key, text := range file.Data {
		if err := os.WriteFile(filepath.Join(folder, key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var arguments []string
	for _, argument := range container.Args {
		arguments = append(arguments, strings.Replace(argument, container.VolumeMounts[0].MountPath, folder, 1))
	}
	options, err := config.Parse(arguments, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// A rollout deletes pods that clients still reach. They serve until all nodes know of the deletion, and are not killed
// before they have written the reports that they hold.
func TestInstall_APodThatIsDeletedServesOnAndMayFinish(t *testing.T) {
	var deployment appsv1.Deployment
	charted(t, render.Default(), "Deployment", "lockstep-controller", &deployment)
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("the Deployment has %d containers", len(pod.Containers))
	}
	lifecycle := pod.Containers[0].Lifecycle
	if lifecycle == nil || lifecycle.PreStop == nil || lifecycle.PreStop.Sleep == nil {
		t.Fatal("the container stops to serve as soon as its pod is deleted")
	}
	// The propagation of a deleted endpoint takes a second or two; a node may be slow.
	const propagation = 5 * time.Second
	serves := time.Duration(lifecycle.PreStop.Sleep.Seconds) * time.Second
	if serves < propagation {
		t.Errorf("the pod serves for %v after its deletion, want %v", serves, propagation)
	}
	if pod.TerminationGracePeriodSeconds == nil {
		t.Fatal("there is no terminationGracePeriodSeconds; the default of 30 s is too short")
	}
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if needs := serves + controller.Ending + controller.Flushing; grace < needs {
		t.Errorf("the pod has %v to end, want %v: %v of service, %v to end and %v to write reports",
			grace, needs, serves, controller.Ending, controller.Flushing)
	}
}

// Jobs may not name the class of the product's own pods, whose value is above those of all jobs.
func TestInstall_PriorityClassIsTheRefusedOne(t *testing.T) {
	var class schedulingv1.PriorityClass
	charted(t, render.Default(), "PriorityClass", plan.OwnPriorityClass, &class)
}

// The webhooks beside Kubeflow Trainer are called for the jobs that the controller calls its own.
func TestInstall_BesideAsksAboutTheJobsThatAreOurs(t *testing.T) {
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	charted(
		t,
		render.Default().With("manage", "chosen"),
		"ValidatingWebhookConfiguration",
		controller.ValidatingConfiguration,
		&validating,
	)
	conditions := validating.Webhooks[0].MatchConditions
	if want := ".spec.managedBy == '" + trainerv1alpha1.LockstepManagedBy + "'"; len(conditions) != 1 ||
		!strings.Contains(conditions[0].Expression, want) {
		t.Errorf("no condition asks about %s: %v", trainerv1alpha1.LockstepManagedBy, conditions)
	}
}
