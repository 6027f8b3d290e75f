package rerun

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// clique is the level at which gangs have wishes, by its label: of the fleet a clique is a rack.
	clique = "nvidia.com/gpu.clique"
	gpus   = "nvidia.com/gpu"
	// replicatedJob is the runtime's name of the job of its nodes.
	replicatedJob = "node"
)

// TrainJob is the gang as a user submits it, with the run time of its fake pods.
func (g Gang) TrainJob(namespace string) (*unstructured.Unstructured, error) {
	annotations := map[string]any{workload.RunTimeAnnotation: g.RunTime.String()}
	if g.Required {
		annotations[topology.AnnotationRequiredTopology] = g.level()
	}
	if g.Segment > 0 {
		annotations[topology.AnnotationSegmentSize] = strconv.Itoa(g.Segment)
		annotations[topology.AnnotationSegmentTopology] = g.level()
	}
	if g.Class != "" {
		annotations[topology.AnnotationPriorityClass] = g.Class
	}
	spec := map[string]any{
		"runtimeRef": map[string]any{"name": "torch-distributed"},
		"trainer": map[string]any{
			"numNodes":         int64(g.Members),
			"resourcesPerNode": map[string]any{"limits": map[string]any{gpus: int64(g.GPUs)}},
		},
	}
	if g.Deadline > 0 {
		spec["activeDeadlineSeconds"] = int64(g.Deadline / time.Second)
	}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": workload.Group + "/v1alpha1", "kind": workload.KindTrainJob,
		"metadata": map[string]any{"name": g.Name, "namespace": namespace, "annotations": annotations},
		"spec":     spec,
	}}
	timed, err := workload.Object{Object: job}.WithRunTime([]string{replicatedJob})
	if err != nil {
		return nil, fmt.Errorf("making TrainJob %s: %w", g.Name, err)
	}
	return timed, nil
}

// Job is the gang as the simulator has it, without its instants.
func (g Gang) Job() trace.Job {
	j := trace.Job{
		ID: g.Name, Podsets: []trace.Podset{{Count: g.Members, GPUs: g.GPUs}}, Preemptible: true, Priority: g.Priority,
	}
	if g.Required {
		j.Required = g.level()
	}
	if g.Segment > 0 {
		j.Segment = trace.Segment{Size: g.Segment, Level: g.level()}
	}
	return j
}

func (g Gang) level() string { return cmp.Or(g.Level, clique) }

// NodeEvent is something that happened to a node.
type NodeEvent struct {
	At   time.Time
	Kind trace.Kind
	Node string
}

// Lost returns the taint that lets a node be lost: its pods are evicted by the taint manager at once, and no new ones
// are bound.
func Lost() corev1.Taint {
	return corev1.Taint{Key: "simulator.lockstep.dev/lost", Effect: corev1.TaintEffectNoExecute}
}
