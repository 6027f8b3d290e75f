package importer

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// Objects holds the API objects behind a scenario. Engines must not change them.
type Objects struct {
	// Nodes are complete, by their number in the tree. Accelerators are in their capacity.
	Nodes []*corev1.Node
	// Running has the objects of Scenario.Running, by its indexes.
	Running []Workload
	// Jobs has the objects of jobs that wait in a snapshot, by Job.ID. Jobs of a trace are not in it.
	Jobs map[string]Workload
}

// Workload is a PodGroup with its pods, or a single pod.
type Workload struct {
	// Group is nil for a pod in no gang.
	Group *schedulingv1beta1.PodGroup
	// Pods are complete. Those of a job are in rank order and have no nodes. Those of Running have nodes; their claims
	// of accelerators are replaced by requests of the accelerator's resource.
	Pods []*corev1.Pod
}

var errNoObjects = errors.New("the scenario has no API objects; make it with package importer")

// ObjectsOf returns the objects of a scenario that this package made. Any other scenario is an error.
func ObjectsOf(s *scenario.Scenario) (*Objects, error) {
	objects, ok := s.Objects.(*Objects)
	if !ok {
		return nil, errNoObjects
	}
	return objects, nil
}
