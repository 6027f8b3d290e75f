package coexistence_test

import (
	"fmt"
	"strings"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// gang creates a gang of as many members of 8 GPUs, with more fields of their pods' specification.
func gang(t *testing.T, name string, members int, fields string) *schedulingv1beta1.PodGroup {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespaceOf(t)}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(members)}
	if class, ok := strings.CutPrefix(fields, "priorityClassName: "); ok {
		group.Spec.PriorityClassName = class
	}
	made, err := shared.Client.SchedulingV1beta1().
		PodGroups(group.Namespace).
		Create(t.Context(), group, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for rank := range members {
		documents = append(documents, member(name, rank, fields))
	}
	create(t, strings.Join(documents, "---\n"))
	return made
}

// member returns a pod of a gang.
func member(gang string, rank int, fields string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {namespace: NAMESPACE, name: %[1]s-%[2]d, labels: {lockstep.dev/pod-group: %[1]s}}
spec:
  schedulerName: lockstep-scheduler
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  %[3]s
  containers:
  - name: main
    image: example.com/train:1
    env: [{name: TOKEN, value: s3cret}]
    resources: {limits: {nvidia.com/gpu: 8}}
`, gang, rank, fields)
}

func convert(t *testing.T, from map[string]any, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, into); err != nil {
		t.Fatal(err)
	}
}
