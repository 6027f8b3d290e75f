package workload

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// RunTimeAnnotation sets on a TrainJob, and on its fake pods, the run time of the pods: a Go duration such as
	// "20s".
	RunTimeAnnotation = "simulator.lockstep.dev/run-time"
	// LastWordsAnnotation sets on a fake pod the end of its log that a kubelet reports when the pod is deleted.
	LastWordsAnnotation = "simulator.lockstep.dev/last-words"
	// StopTimeAnnotation sets on a fake pod the time that its program takes to end when the pod is deleted: a Go
	// duration such as "1s".
	StopTimeAnnotation = "simulator.lockstep.dev/stop-time"
	// SubmitAfterAnnotation sets on a TrainJob the delay of its submission after the others: a Go duration such as
	// "8s".
	SubmitAfterAnnotation = "simulator.lockstep.dev/submit-after"
	// DefaultRunTime is the run time of pods that state none.
	DefaultRunTime = 10 * time.Second
	// Manager is the writer of the run time among a TrainJob's runtime patches.
	Manager = "simulator.lockstep.dev/up"
)

// RunTime returns the run time of a TrainJob's pods.
func (o Object) RunTime() (time.Duration, error) {
	return o.duration(RunTimeAnnotation, "run time", DefaultRunTime)
}

// SubmitAfter returns the time from the beginning to the submission of a TrainJob; 0 is at once.
func (o Object) SubmitAfter() (time.Duration, error) {
	return o.duration(SubmitAfterAnnotation, "delay", 0)
}

// duration reads an annotation whose meaning has a name; where nothing is said it is otherwise.
func (o Object) duration(annotation, name string, otherwise time.Duration) (time.Duration, error) {
	path := []string{"metadata", "annotations", annotation}
	said, set, err := unstructured.NestedString(o.Object.Object, path...)
	if err != nil {
		return 0, o.from.At("the "+name+" of "+o.String()+" is not text", "put it in quotes", anys(path)...)
	}
	if !set {
		return otherwise, nil
	}
	value, err := time.ParseDuration(said)
	if err != nil || value <= 0 {
		what := fmt.Sprintf("%s %q of %s is not a duration above zero", name, said, o)
		return 0, o.from.At(what, "write one such as 20s or 1m30s", anys(path)...)
	}
	return value, nil
}

// WithRunTime returns a copy of the TrainJob whose runtime patches set its run time on the pods of the replicated jobs.
func (o Object) WithRunTime(replicatedJobs []string) (*unstructured.Unstructured, error) {
	runTime, err := o.RunTime()
	if err != nil {
		return nil, err
	}
	patches, _, err := unstructured.NestedSlice(o.Object.Object, "spec", "runtimePatches")
	if err != nil {
		return nil, o.from.At("spec.runtimePatches is not a list", "write a list of patches", "spec", "runtimePatches")
	}
	copied := o.Object.DeepCopy()
	patches = append(withoutManager(patches), runTimePatch(runTime, replicatedJobs))
	if err := unstructured.SetNestedSlice(copied.Object, patches, "spec", "runtimePatches"); err != nil {
		return nil, o.from.At("spec is not an object", "write the fields of a TrainJob below it", "spec")
	}
	return copied, nil
}

// withoutManager leaves out our own entry, which a TrainJob taken from another run may carry: managers are unique.
func withoutManager(patches []any) []any {
	var others []any
	for _, patch := range patches {
		if fields, isMap := patch.(map[string]any); isMap && fields["manager"] == Manager {
			continue
		}
		others = append(others, patch)
	}
	return others
}

func runTimePatch(runTime time.Duration, replicatedJobs []string) map[string]any {
	jobs := make([]any, 0, len(replicatedJobs))
	for _, name := range replicatedJobs {
		annotations := map[string]any{RunTimeAnnotation: runTime.String()}
		podTemplate := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		jobTemplate := map[string]any{"spec": map[string]any{"template": podTemplate}}
		jobs = append(jobs, map[string]any{"name": name, "template": jobTemplate})
	}
	jobSet := map[string]any{"spec": map[string]any{"replicatedJobs": jobs}}
	return map[string]any{
		"manager":             Manager,
		"trainingRuntimeSpec": map[string]any{"template": jobSet},
	}
}
