package cluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// hosted is a process of this machine that stands for the pods of a Deployment: there is no kubelet that would run
// them.
type hosted struct {
	// args are those of the container, with the paths of files that a volume would bring.
	args []string
	// user is the name by which the API server knows the pods' account.
	user string
}

// host reads the Deployment of that name among objects, and writes the ConfigMaps that its container mounts below a
// folder of the run.
func (s *state) host(objects []*unstructured.Unstructured, name string) (hosted, error) {
	var deployment appsv1.Deployment
	if err := pick(objects, "Deployment", name, &deployment); err != nil {
		return hosted{}, err
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		return hosted{}, fmt.Errorf(
			"deployment %s has %d containers, and one process stands for it",
			name,
			len(pod.Containers),
		)
	}
	container := pod.Containers[0]
	out := hosted{
		args: slices.Clone(container.Args),
		user: "system:serviceaccount:" + deployment.Namespace + ":" + pod.ServiceAccountName,
	}
	for _, mount := range container.VolumeMounts {
		folder, err := s.mount(objects, pod.Volumes, mount, name)
		if err != nil {
			return hosted{}, fmt.Errorf("volume %s of Deployment %s: %w", mount.Name, name, err)
		}
		for i, arg := range out.args {
			out.args[i] = strings.Replace(arg, "="+mount.MountPath+"/", "="+folder+"/", 1)
		}
	}
	return out, nil
}

// mount writes the keys of the ConfigMap that a volume is of, and returns their folder.
func (s *state) mount(
	objects []*unstructured.Unstructured, volumes []corev1.Volume, mount corev1.VolumeMount, owner string,
) (string, error) {
	at := slices.IndexFunc(volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name })
	if at < 0 || volumes[at].ConfigMap == nil {
		return "", fmt.Errorf("it is not of a ConfigMap: %w", errNotHosted)
	}
	var content corev1.ConfigMap
	if err := pick(objects, "ConfigMap", volumes[at].ConfigMap.Name, &content); err != nil {
		return "", err
	}
	for key, text := range content.Data {
		if _, err := s.write([]byte(text), "mounts", owner, mount.MountPath, key); err != nil {
			return "", err
		}
	}
	return s.path("mounts", owner, filepath.FromSlash(mount.MountPath)), nil
}

// pick reads the object of that kind and name.
func pick(objects []*unstructured.Unstructured, kind, name string, into any) error {
	for _, object := range objects {
		if object.GetKind() != kind || object.GetName() != name {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return fmt.Errorf("reading %s %s: %w", kind, name, err)
		}
		return nil
	}
	return fmt.Errorf("the chart has no %s %s: %w", kind, name, errNotHosted)
}
