package support

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/redact"
)

// logLines is the number of lines of a container's log in a bundle, and logBytes the largest number of bytes.
const (
	logLines = 20000
	logBytes = 16 << 20
)

// objects adds the objects of a kind as YAML. A kind that the cluster does not serve, or has no objects of, is no part
// of the bundle.
func (b *Bundle) objects(ctx context.Context, client dynamic.Interface, of kind, namespaces []string) {
	in := []string{metav1.NamespaceAll}
	if of.inside {
		in = namespaces
	}
	var text bytes.Buffer
	for _, namespace := range in {
		options := metav1.ListOptions{Limit: most, LabelSelector: of.labels, FieldSelector: of.fields}
		list, err := client.Resource(of.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			b.miss(of.file(), err)
			continue
		}
		for i := range list.Items {
			if err := write(&text, &list.Items[i], of); err != nil {
				b.miss(of.file(), err)
			}
		}
		if list.GetContinue() != "" {
			b.miss(of.file(), fmt.Errorf("%w: the first %d are there", errMany, most))
		}
	}
	if text.Len() > 0 {
		b.add(of.file(), text.Bytes())
	}
}

// errMany indicates that there are more objects of a kind than a bundle has.
var errMany = errors.New("there are too many")

// write writes an object without possible secrets.
func write(out *bytes.Buffer, object *unstructured.Unstructured, of kind) error {
	switch {
	case of.Resource == "customresourcedefinitions" && !definition(object):
		return nil
	case of.Resource == "events" && of.inside && !aboutPrograms(object):
		return nil
	}
	redact.Environment(object.Object)
	redact.Annotations(object.Object)
	redact.Texts(object.Object)
	if !of.installed {
		redact.Commands(object.Object)
	}
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	out.WriteString("---\n")
	out.Write(content)
	return nil
}

// aboutPrograms reports whether an Event is about an object of Lockstep's or JobSet's.
func aboutPrograms(event *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
	return strings.HasPrefix(name, "lockstep") || strings.HasPrefix(name, "jobset")
}

// definition reports whether a CRD is of a group that matters here, and removes its schemas, which are long and known.
func definition(crd *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	if !slices.ContainsFunc(groups(), func(of string) bool { return group == of || strings.HasSuffix(group, "."+of) }) {
		return false
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok {
			delete(fields, "schema")
		}
	}
	unstructured.RemoveNestedField(crd.Object, "spec", "versions")
	return unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions") == nil
}

// logs adds the logs of Lockstep's and JobSet's pods in a namespace, and those of containers that were restarted.
func (b *Bundle) logs(ctx context.Context, client kubernetes.Interface, namespace string) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: programs})
	if err != nil {
		b.miss("logs of namespace "+namespace, err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, status := range pod.Status.ContainerStatuses {
			name := fmt.Sprintf("logs/%s/%s-%s", pod.Namespace, pod.Name, status.Name)
			b.log(ctx, client, pod, corev1.PodLogOptions{Container: status.Name}, name+".log")
			if status.RestartCount > 0 {
				b.log(
					ctx,
					client,
					pod,
					corev1.PodLogOptions{Container: status.Name, Previous: true},
					name+"-before.log",
				)
			}
		}
	}
}

// log adds the log that the options name, as a part of that name.
func (b *Bundle) log(
	ctx context.Context,
	client kubernetes.Interface,
	of *corev1.Pod,
	options corev1.PodLogOptions,
	name string,
) {
	lines := int64(logLines)
	options.TailLines, options.Timestamps = &lines, true
	stream, err := client.CoreV1().Pods(of.Namespace).GetLogs(of.Name, &options).Stream(ctx)
	if err != nil {
		b.miss(name, err)
		return
	}
	content, err := io.ReadAll(io.LimitReader(stream, logBytes))
	_ = stream.Close() // it was only read
	if err != nil {
		b.miss(name, err)
		return
	}
	b.add(name, []byte(redact.Text(string(content))))
}
