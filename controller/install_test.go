package controller_test

import (
	"bytes"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-project/lockstep/controller"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests"
)

// A rollout deletes pods that clients still reach. They serve until all nodes know, and are not killed before they have written what they
// hold.
func TestInstall_APodThatIsDeletedServesOnAndMayFinish(t *testing.T) {
	content, err := manifests.Files.ReadFile("install/controller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096).Decode(&deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if deployment.Kind != "Deployment" || len(pod.Containers) != 1 {
		t.Fatalf("the first object is a %s with %d containers", deployment.Kind, len(pod.Containers))
	}
	lifecycle := pod.Containers[0].Lifecycle
	if lifecycle == nil || lifecycle.PreStop == nil || lifecycle.PreStop.Sleep == nil {
		t.Fatal("the container stops to serve as soon as its pod is deleted")
	}
	// What follows the deletion of an endpoint takes a second or two; a node may be slow.
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

// What the webhooks beside Kubeflow Trainer are asked about is what the controller calls its own.
func TestInstall_BesideAsksAboutTheJobsThatAreOurs(t *testing.T) {
	content, err := manifests.Files.ReadFile("webhooks/webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	installation := manifests.Default()
	installation.Flags = []string{"--manage=chosen"}
	rendered, err := manifests.Render(content, installation)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(rendered, []byte(".spec.managedBy == '"+trainerv1alpha1.LockstepManagedBy+"'")) {
		t.Errorf("no condition asks about %s", trainerv1alpha1.LockstepManagedBy)
	}
}
