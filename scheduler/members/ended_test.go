package members_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest/fakeserver"
)

// handle is a framework's handle, as far as Ended uses one.
type handle struct {
	fwk.Handle

	client *fake.Clientset
}

func (h handle) ClientSet() kubernetes.Interface { return h.client }
func (handle) ProfileName() string               { return "lockstep-scheduler" }

// Pods that end are followed under each name of the profile, and those of other schedulers are not.
func TestEnded_FollowsAliases(t *testing.T) {
	client := fake.NewClientset()
	fakeserver.HonorFields(client)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := members.NewEnded(map[string]string{"alias": "lockstep-scheduler", "elsewhere": "another-profile"})
	happened := make(chan string, 10)
	err := ended.Follow(ctx, handle{client: client}, func(pod *corev1.Pod) { happened <- pod.Name })
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !ended.Synced("lockstep-scheduler"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not list the pods that had ended")
		}
	}
	group := "g"
	for _, name := range []string{"elsewhere", "default-scheduler", "lockstep-scheduler", "alias"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
		pod.Spec.SchedulerName, pod.Status.Phase = name, corev1.PodSucceeded
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		if _, err := client.CoreV1().Pods("team").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{<-happened: true, <-happened: true}
	if !got["alias"] || !got["lockstep-scheduler"] || len(happened) > 0 {
		t.Errorf("%v ended, and %d more", got, len(happened))
	}
	succeeded := ended.Succeeded("lockstep-scheduler", types.NamespacedName{Namespace: "team", Name: group})
	if len(succeeded) != 2 || succeeded[0].Name != "alias" {
		t.Errorf("%d members have succeeded", len(succeeded))
	}
}
