package workload

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RuntimeRef is the runtime that a TrainJob names, with defaults filled in.
type RuntimeRef struct {
	APIGroup  string
	Kind      string
	Namespace string // the job's, for a TrainingRuntime; empty for a ClusterTrainingRuntime
	Name      string
}

// String is the runtime's kind and name, with its namespace if it has one.
func (r RuntimeRef) String() string {
	return r.Kind + " " + fullName(r.Namespace, r.Name)
}

// RuntimeOf is the runtime that a TrainJob names. Its name is empty where the job names none.
func RuntimeOf(job *unstructured.Unstructured) RuntimeRef {
	said, _, _ := unstructured.NestedStringMap(job.Object, "spec", "runtimeRef")
	ref := RuntimeRef{
		APIGroup: cmp.Or(said["apiGroup"], Group),
		Kind:     cmp.Or(said["kind"], KindClusterTrainingRuntime),
		Name:     said["name"],
	}
	if ref.Kind == KindTrainingRuntime {
		ref.Namespace = cmp.Or(job.GetNamespace(), defaultNamespace)
	}
	return ref
}

// Runtime returns the runtime of the workload that ref names.
func (w Workload) Runtime(ref RuntimeRef) (Object, bool) {
	for _, runtime := range w.Runtimes() {
		if refTo(runtime) == ref {
			return runtime, true
		}
	}
	return Object{}, false
}

func refTo(runtime Object) RuntimeRef {
	ref := RuntimeRef{APIGroup: Group, Kind: runtime.Object.GetKind(), Name: runtime.Object.GetName()}
	if ref.Kind == KindTrainingRuntime {
		ref.Namespace = runtime.Object.GetNamespace()
	}
	return ref
}

// CheckRuntimes refuses a TrainJob whose runtime is neither in the workload nor known to the cluster. The names of the
// cluster's runtimes, such as "torch-distributed", serve the error's advice only.
func (w Workload) CheckRuntimes(known func(kind, namespace, name string) bool, names ...string) error {
	for _, job := range w.TrainJobs() {
		ref := RuntimeOf(job.Object)
		switch {
		case ref.Name == "":
			return job.from.At(job.String()+" names no runtime", w.adviceOnRuntimes(names), "spec", "runtimeRef")
		case ref.APIGroup != Group, ref.Kind != KindClusterTrainingRuntime && ref.Kind != KindTrainingRuntime:
			what := fmt.Sprintf("%s names a runtime of kind %s in %s", job, ref.Kind, ref.APIGroup)
			mend := fmt.Sprintf("use %s or %s in %s", KindClusterTrainingRuntime, KindTrainingRuntime, Group)
			return job.from.At(what, mend, "spec", "runtimeRef", "kind")
		}
		if _, here := w.Runtime(ref); here || known(ref.Kind, ref.Namespace, ref.Name) {
			continue
		}
		what := fmt.Sprintf("%s names %s, which does not exist", job, ref)
		return job.from.At(what, w.adviceOnRuntimes(names), "spec", "runtimeRef", "name")
	}
	return nil
}

func (w Workload) adviceOnRuntimes(names []string) string {
	var exist []string
	for _, runtime := range w.Runtimes() {
		exist = append(exist, runtime.String())
	}
	exist = append(exist, names...)
	if len(exist) == 0 {
		return "add the runtime to the workload"
	}
	return "what exists: " + strings.Join(exist, ", ")
}

// ReplicatedJobs returns the names of a runtime's replicated jobs, in its order.
func ReplicatedJobs(runtime *unstructured.Unstructured) []string {
	jobs, _, _ := unstructured.NestedSlice(runtime.Object, "spec", "template", "spec", "replicatedJobs")
	var names []string
	for _, job := range jobs {
		if fields, isMap := job.(map[string]any); isMap {
			if name, isText := fields["name"].(string); isText {
				names = append(names, name)
			}
		}
	}
	return names
}
