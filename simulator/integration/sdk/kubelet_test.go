package sdk_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// unpullable is a node that KWOK leaves alone: the test is its kubelet, and has no image for any pod.
const unpullable = "unpullable"

// keepKubelet adds that node, and has its pods wait for an image, with the Event that a kubelet writes, until the test
// ends.
func keepKubelet(t *testing.T, namespace string) {
	t.Helper()
	nodes := shared.Client.CoreV1().Nodes()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: unpullable + "-" + namespace, Labels: map[string]string{"example.com/kubelet": "played"},
		},
		// Or the pods of other scenes would be placed there.
		Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: "example.com/kubelet", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Capacity: room(), Allocatable: room(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		stop()
		_ = nodes.Delete(context.WithoutCancel(t.Context()), node.Name, metav1.DeleteOptions{})
	})
	go func() {
		for ctx.Err() == nil {
			if err := failImagePulls(ctx, namespace, node.Name); err != nil && ctx.Err() == nil {
				t.Logf("playing a kubelet, which tries again: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
}

func room() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("4"),
	}
}

// failImagePulls does once the work of a kubelet for the pods of its node whose image is unavailable.
func failImagePulls(ctx context.Context, namespace, node string) error {
	if err := beat(ctx, node); err != nil {
		return err
	}
	pods := shared.Client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		switch {
		case pod.DeletionTimestamp != nil:
			err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		case len(pod.Status.ContainerStatuses) == 0:
			err = failPull(ctx, pod)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// beat reports a node ready, as its kubelet does again and again.
func beat(ctx context.Context, name string) error {
	node, err := shared.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(),
	}}
	_, err = shared.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// failPull reports on a pod that its image is unavailable.
func failPull(ctx context.Context, pod *corev1.Pod) error {
	image, name := pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Name
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{
			Name:  name,
			Image: image,
			State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"},
			},
		},
	}
	if _, err := shared.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	now := metav1.Now()
	_, err := shared.Client.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name, Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "Failed", Message: `Failed to pull image "` + image + `": not found`,
		Source: corev1.EventSource{Component: "kubelet"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	return err
}
