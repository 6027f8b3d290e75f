package gangqueue_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/topology"
)

// entity is a queued group or a queued pod.
type entity struct {
	fwk.QueuedEntityInfo
	priority int32
	group    *schedulingv1beta1.PodGroup
}

func (e entity) GetPriority() int32                       { return e.priority }
func (e entity) GetPodGroup() *schedulingv1beta1.PodGroup { return e.group }

type single struct {
	fwk.QueuedEntityInfo
	fwk.PodInfo
	pod *corev1.Pod
}

func (s single) GetPriority() int32      { return 0 }
func (s single) GetPodInfo() fwk.PodInfo { return podInfo{pod: s.pod} }

type podInfo struct {
	fwk.PodInfo
	pod *corev1.Pod
}

func (p podInfo) GetPod() *corev1.Pod { return p.pod }

func TestOrder(t *testing.T) {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	object := func(name string, created int, queued string) metav1.ObjectMeta {
		o := metav1.ObjectMeta{
			Namespace:         "ns",
			Name:              name,
			CreationTimestamp: metav1.NewTime(day.Add(time.Duration(created) * time.Hour)),
		}
		if queued != "" {
			o.Annotations = map[string]string{topology.AnnotationQueuedAt: queued}
		}
		return o
	}
	gang := func(priority int32, o metav1.ObjectMeta) entity {
		return entity{priority: priority, group: &schedulingv1beta1.PodGroup{ObjectMeta: o}}
	}
	want := []fwk.QueuedEntityInfo{
		gang(10, object("urgent", 9, "")),
		gang(0, object("restarted", 8, "2026-11-21T00:30:00Z")),
		gang(0, object("a-same-time", 1, "")),
		single{pod: &corev1.Pod{ObjectMeta: object("b-same-time", 1, "")}},
		gang(0, object("unreadable", 2, "yesterday")),
		gang(0, object("other-zone", 1, "2026-11-21T05:00:00+02:00")),
		single{pod: &corev1.Pod{ObjectMeta: object("last", 4, "")}},
		gang(-1, object("background", 0, "")),
	}
	plugin, _ := newPlugin(t, newScheduler())
	for seed := range uint64(20) {
		got := slices.Clone(want)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, func(a, b fwk.QueuedEntityInfo) int {
			switch {
			case plugin.Less(a, b):
				return -1
			case plugin.Less(b, a):
				return 1
			}
			return 0
		})
		if !slices.Equal(got, want) {
			t.Fatalf("order is %v, want %v", got, want)
		}
	}
}
