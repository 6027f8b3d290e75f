package demand_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/scheduler/demand"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
)

const class = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

// groupOf returns a PodGroup that waits for room for as many members.
func groupOf(minCount int32) *schedulingv1beta1.PodGroup {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "u1"}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}
	group.Status.Conditions = []metav1.Condition{
		{
			Type:    explanation.Condition,
			Status:  metav1.ConditionTrue,
			Reason:  explanation.NoRoom,
			Message: "4 members lack a node each",
		},
	}
	return group
}

// podOf returns a member that waits, with a secret in each place where users put some.
func podOf(rank, accelerators int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team",
		Name:      fmt.Sprintf("train-%d", rank),
		Labels: map[string]string{
			"batch.kubernetes.io/job-completion-index": strconv.Itoa(rank),
			"token": "s3cret",
		},
		Annotations: map[string]string{"token": "s3cret"},
	}}
	pod.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{"pool": "train"},
		Tolerations:  []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
		Volumes: []corev1.Volume{
			{Name: "s3cret", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		ServiceAccountName: "s3cret",
		Containers: []corev1.Container{{
			Name: "node", Image: "example.com/torch:1", Command: []string{"s3cret"}, Args: []string{"--token=s3cret"},
			Env:          []corev1.EnvVar{{Name: "TOKEN", Value: "s3cret"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "s3cret", MountPath: "/s3cret"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"nvidia.com/gpu": *resource.NewQuantity(int64(accelerators), resource.DecimalSI),
			}},
		}},
		InitContainers: []corev1.Container{{Name: "fetch", Image: "example.com/fetch:1", Args: []string{"s3cret"}}},
	}
	return pod
}

func podsOf(counts ...int) []*corev1.Pod {
	var pods []*corev1.Pod
	for rank, accelerators := range counts {
		pods = append(pods, podOf(rank, accelerators))
	}
	return pods
}

// A gang that waits for room asks once for all members that it lacks; any other gang asks for nothing.
func TestWanted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*schedulingv1beta1.PodGroup, []*corev1.Pod)
		pods   []*corev1.Pod
		want   []int32
	}{
		"waits":              {pods: podsOf(4, 4, 4), want: []int32{3}},
		"launcher, workers":  {pods: podsOf(1, 4, 4), want: []int32{1, 2}},
		"more than it needs": {pods: podsOf(4, 4, 4, 4, 4), want: []int32{3}},
		"one member was lost": {
			pods: podsOf(4, 4, 4), want: []int32{1},
			change: func(_ *schedulingv1beta1.PodGroup, pods []*corev1.Pod) {
				pods[0].Spec.NodeName, pods[2].Spec.NodeName = "a", "b"
			},
		},
		"late member": {
			pods: podsOf(4, 4, 4), want: []int32{3, 1},
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) {
				group.Annotations = map[string]string{"lockstep.dev/late-members": `[{"metadata":{"labels":{"role":"launcher"}},"spec":{"containers":[{"name":"l","image":"l"}]}}]`}
			},
		},
		"runs": {
			pods: podsOf(4, 4, 4),
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) {
				group.Status.Conditions[0].Status = metav1.ConditionFalse
			},
		},
		"no gang": {
			pods:   podsOf(4, 4, 4),
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) { group.Spec.SchedulingPolicy.Gang = nil },
		},
		"nothing said yet": {
			pods:   podsOf(4, 4, 4),
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) { group.Status.Conditions = nil },
		},
		"not evaluated yet": {
			pods: podsOf(4, 4, 4),
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) {
				group.Status.Conditions[0].Message = explanation.NotAsked
			},
		},
		"cannot be read": {
			pods: podsOf(4, 4, 4),
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) {
				group.Status.Conditions[0].Reason = explanation.WrongRequest
			},
		},
		"is deleted": {
			pods:   podsOf(4, 4, 4),
			change: func(group *schedulingv1beta1.PodGroup, _ []*corev1.Pod) { group.DeletionTimestamp = &metav1.Time{} },
		},
		"incomplete": {pods: podsOf(4, 4)},
		"claims devices": {
			pods: podsOf(4, 4, 4),
			change: func(_ *schedulingv1beta1.PodGroup, pods []*corev1.Pod) {
				pods[1].Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
			},
		},
		"asked by Kueue": {
			pods: podsOf(4, 4, 4),
			change: func(_ *schedulingv1beta1.PodGroup, pods []*corev1.Pod) {
				pods[0].Annotations["autoscaling.x-k8s.io/consume-provisioning-request"] = "kueue"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := groupOf(3)
			if c.change != nil {
				c.change(group, c.pods)
			}
			request, wants := demand.Wanted(group, c.pods, class)
			var counts []int32
			for _, set := range request.Sets {
				counts = append(counts, set.Count)
			}
			if !wants {
				counts = nil
			}
			if !slices.Equal(counts, c.want) {
				t.Errorf("it asks for %v, want %v", counts, c.want)
			}
		})
	}
}

// The name says the content: equal requests have one name, in any order of the members, and others have another.
func TestWanted_Name(t *testing.T) {
	name := func(group *schedulingv1beta1.PodGroup, class string, counts ...int) string {
		pods := podsOf(counts...)
		slices.Reverse(pods)
		request, _ := demand.Wanted(group, pods, class)
		return request.Name
	}
	first := name(groupOf(2), class, 4, 4)
	if again := name(groupOf(2), class, 4, 4); again != first || !strings.HasPrefix(first, "train-") {
		t.Errorf("the names of equal requests are %q and %q", first, again)
	}
	reborn := groupOf(2)
	reborn.UID = "u2"
	for what, other := range map[string]string{
		"members": name(groupOf(3), class, 4, 4, 4), "resources": name(groupOf(2), class, 8, 8),
		"class": name(groupOf(2), "queued.example.com", 4, 4), "group": name(reborn, class, 4, 4),
	} {
		if other == first {
			t.Errorf("other %s have the same name %q", what, other)
		}
	}
	long := groupOf(2)
	long.Name = strings.Repeat("n", 253)
	if got := name(long, class, 4, 4); len(got) > 250 {
		t.Errorf("a name has %d characters", len(got))
	}
}

// Nothing that a user may keep secret is in a template.
func TestTemplateOf_HasNoSecrets(t *testing.T) {
	text, err := yaml.Marshal(demand.TemplateOf(podOf(0, 4)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") {
		t.Errorf("a secret is in\n%s", text)
	}
	for _, want := range []string{"nvidia.com/gpu: \"4\"", "pool: train", "key: nvidia.com/gpu", "image: example.com/torch:1", "name: fetch"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
