package conformance

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// scene is a case as upstream's controller would find it in the API server.
type scene struct {
	job     *trainer.TrainJob
	objects []client.Object
	scheme  *runtime.Scheme
	// status is set if there is a status server.
	status bool
}

// read reads trainjob.yaml and runtime.yaml, and from cluster.yaml, if there is one, other objects of the cluster, such
// as priority classes. A runtime without its TrainJob's namespace gets it.
func read(folder string) (scene, error) {
	scheme, err := newScheme()
	if err != nil {
		return scene{}, err
	}
	s := scene{job: &trainer.TrainJob{}, scheme: scheme}
	if s.status, err = readOptions(folder); err != nil {
		return scene{}, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "trainjob.yaml"))
	if err != nil {
		return scene{}, fmt.Errorf("reading the job: %w", err)
	}
	if text, err = pruned(text); err != nil {
		return scene{}, fmt.Errorf("parsing trainjob.yaml: %w", err)
	}
	if err = yaml.UnmarshalStrict(text, s.job); err != nil {
		return scene{}, fmt.Errorf("parsing trainjob.yaml: %w", err)
	}
	// The API server would have put these.
	reference := &s.job.Spec.RuntimeRef
	reference.APIGroup = cmp.Or(reference.APIGroup, new(trainer.GroupVersion.Group))
	reference.Kind = cmp.Or(reference.Kind, new(trainer.ClusterTrainingRuntimeKind))
	for _, name := range []string{"runtime.yaml", "cluster.yaml"} {
		objects, err := readObjects(filepath.Join(folder, name), scheme)
		if name == "cluster.yaml" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return scene{}, err
		}
		s.objects = append(s.objects, objects...)
	}
	for _, object := range s.objects {
		if _, ok := object.(*trainer.TrainingRuntime); ok {
			object.SetNamespace(s.job.Namespace)
		}
	}
	return s, nil
}

func readObjects(file string, scheme *runtime.Scheme) ([]client.Object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	var objects []client.Object
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		document, err := pruned(document)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		}
		decoded, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", file, err)
		}
		object, ok := decoded.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%s has a %T, which is no object", file, decoded)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// pruned is an object without the scheduling of a runtime and the claims of a job, which upstream's API server does not
// know and drops. Any other unknown option is a mistake in the case.
func pruned(document []byte) ([]byte, error) {
	var content map[string]any
	if err := yaml.Unmarshal(document, &content); err != nil {
		return nil, fmt.Errorf("parsing YAML: %w", err)
	}
	if spec, ok := content["spec"].(map[string]any); ok {
		delete(spec, "scheduling")
		if trainer, ok := spec["trainer"].(map[string]any); ok {
			delete(trainer, "resourceClaimsPerNode")
		}
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("printing YAML: %w", err)
	}
	return text, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, trainer.AddToScheme, jobsetv1alpha2.AddToScheme,
		coscheduling.AddToScheme, volcano.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}
