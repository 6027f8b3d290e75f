package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

const (
	// Group is the API group of TrainJobs and their runtimes.
	Group = "trainer.kubeflow.org"
	// KindTrainJob is a job to run.
	KindTrainJob = "TrainJob"
	// KindTrainingRuntime is a runtime of one namespace.
	KindTrainingRuntime = "TrainingRuntime"
	// KindClusterTrainingRuntime is a runtime for all namespaces, and the default kind of a TrainJob's reference.
	KindClusterTrainingRuntime = "ClusterTrainingRuntime"

	defaultNamespace = "default"
)

// A Workload holds the objects that a user wants to run.
type Workload struct {
	// Objects are in the order to apply them: Namespaces, runtimes, anything else, TrainJobs.
	Objects []Object
}

// An Object is one Kubernetes object and the place where the user wrote it.
type Object struct {
	File   string
	Line   int
	Object *unstructured.Unstructured

	from yamlfile.Document
}

// Load reads files and folders. Of a folder, *.yaml, *.yml and *.json are read in the order of their names.
func Load(paths []string) (Workload, error) {
	var objects []Object
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return Workload{}, err
		}
		for _, file := range files {
			found, err := load(file)
			if err != nil {
				return Workload{}, err
			}
			objects = append(objects, found...)
		}
	}
	if err := unique(objects); err != nil {
		return Workload{}, err
	}
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Compare(a.turn(), b.turn())
	})
	loaded := Workload{Objects: objects}
	if len(loaded.TrainJobs()) == 0 {
		return Workload{}, &badinput.Error{
			Where: cmp.Or(strings.Join(paths, ", "), "--jobs"),
			What:  "there is no TrainJob",
			Mend:  "add an object of apiVersion " + Group + "/v1alpha1 and kind " + KindTrainJob,
		}
	}
	return loaded, nil
}

func load(file string) ([]Object, error) {
	documents, err := yamlfile.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, document := range documents {
		items, err := document.Items()
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			object, err := read(item)
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// TrainJobs returns the jobs in the order to apply them.
func (w Workload) TrainJobs() []Object {
	return w.where(func(o Object) bool { return o.isOurs(KindTrainJob) })
}

// Runtimes returns the TrainingRuntimes and ClusterTrainingRuntimes in the order to apply them.
func (w Workload) Runtimes() []Object {
	return w.where(Object.isRuntime)
}

func (w Workload) where(wanted func(Object) bool) []Object {
	var found []Object
	for _, object := range w.Objects {
		if wanted(object) {
			found = append(found, object)
		}
	}
	return found
}

// Where is the object's place as file:line.
func (o Object) Where() string {
	return badinput.Position(o.File, o.Line)
}

// String is the object's kind and name, with its namespace if it has one.
func (o Object) String() string {
	return o.Object.GetKind() + " " + fullName(o.Object.GetNamespace(), o.Object.GetName())
}

func fullName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (o Object) isOurs(kind string) bool {
	gvk := o.Object.GroupVersionKind()
	return gvk.Group == Group && gvk.Kind == kind
}

func (o Object) isRuntime() bool {
	return o.isOurs(KindTrainingRuntime) || o.isOurs(KindClusterTrainingRuntime)
}

// turn is the object's place in the order to apply things.
func (o Object) turn() int {
	switch {
	case o.Object.GetAPIVersion() == "v1" && o.Object.GetKind() == "Namespace":
		return 0
	case o.isRuntime():
		return 1
	case o.isOurs(KindTrainJob):
		return 3
	}
	return 2
}

// unique refuses two objects that would be one in the cluster.
func unique(objects []Object) error {
	type identity struct{ group, kind, namespace, name string }
	first := make(map[identity]Object, len(objects))
	for _, object := range objects {
		gvk := object.Object.GroupVersionKind()
		namespace := cmp.Or(object.Object.GetNamespace(), defaultNamespace)
		id := identity{group: gvk.Group, kind: gvk.Kind, namespace: namespace, name: object.Object.GetName()}
		other, taken := first[id]
		if !taken {
			first[id] = object
			continue
		}
		what := fmt.Sprintf("%s is there twice, first at %s", object, other.Where())
		return object.from.At(what, "rename or remove one of them")
	}
	return nil
}
