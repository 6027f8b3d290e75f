package waiting_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// began is the instant at which every fleet begins.
var began = time.Unix(1_000_000, 0)

// fleet is nodes of eight GPUs in cliques, their pods, and the queue of a scheduler.
type fleet struct {
	tb     testing.TB
	clock  *clocktesting.FakeClock
	queue  *waiting.Queue
	reader *waiting.Reader
	groups lister
	nodes  []fwk.NodeInfo
	woken  []contention.ID
}

// lister finds PodGroups.
type lister map[types.NamespacedName]*schedulingv1beta1.PodGroup

func (l lister) Get(namespace, name string) (*schedulingv1beta1.PodGroup, error) {
	if g := l[types.NamespacedName{Namespace: namespace, Name: name}]; g != nil {
		return g, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "podgroups"}, name)
}

func newFleet(tb testing.TB, nodes, perClique int) *fleet {
	tb.Helper()
	f := &fleet{tb: tb, clock: clocktesting.NewFakeClock(began), groups: make(lister)}
	t := timing.Timing{Clock: f.clock, Beside: func(do func()) { go do() }, Gather: time.Millisecond}
	f.queue = waiting.New(t, contention.DefaultPolicy())
	f.queue.Wakes(func(id contention.ID) { f.woken = append(f.woken, id) })
	f.reader = &waiting.Reader{
		Indices: snapshot.NewIndices(nil, nodehealth.Rules{}), Accelerators: []corev1.ResourceName{gpu},
		Groups: func() fwk.PodGroupLister { return f.groups }, Version: f.queue.Version,
	}
	for i := range nodes {
		has := corev1.ResourceList{
			gpu: resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("64"),
			corev1.ResourcePods: resource.MustParse("110"),
		}
		info := framework.NewNodeInfo()
		info.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf(
					"n%05d",
					i,
				),
				Labels: map[string]string{topology.LabelClique: fmt.Sprint("c.", i/perClique)},
			},
			Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
		})
		f.nodes = append(f.nodes, info)
	}
	return f
}

func pod(name, gpus string) *corev1.Pod {
	asks := corev1.ResourceList{gpu: resource.MustParse(gpus), corev1.ResourceCPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(began),
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}},
			},
		},
	}
}

// runs puts a gang on nodes, one pod on each. It is expected to end after a while; 0 is unknown.
func (f *fleet) runs(name, gpus string, left time.Duration, nodes ...int) []*corev1.Pod {
	group := f.group(name, len(nodes))
	if left > 0 {
		group.Annotations[topology.AnnotationExpectedEnd] = f.clock.Now().Add(left).UTC().Format(time.RFC3339)
	}
	started := metav1.NewTime(f.clock.Now())
	var pods []*corev1.Pod
	for rank, n := range nodes {
		p := pod(fmt.Sprintf("%s-%d", name, rank), gpus)
		p.Spec.NodeName, p.Status.StartTime = f.nodes[n].Node().Name, &started
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
		f.nodes[n].(*framework.NodeInfo).AddPod(p)
		pods = append(pods, p)
	}
	return pods
}

func (f *fleet) group(name string, least int) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(f.clock.Now()),
		Annotations: map[string]string{},
	}}
	g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(least)}
	f.groups[types.NamespacedName{Namespace: "team", Name: name}] = g
	return g
}

// asks evaluates a gang of whole nodes in one clique.
func (f *fleet) asks(group *schedulingv1beta1.PodGroup, gpus string) waiting.Outcome {
	f.tb.Helper()
	return f.queue.Turn(f.question(group, gpus))
}

func (f *fleet) question(group *schedulingv1beta1.PodGroup, gpus string) *waiting.Question {
	f.tb.Helper()
	asked := waiting.Asked{Group: group, Nodes: f.nodes, Now: f.clock.Now()}
	for rank := range int(group.Spec.SchedulingPolicy.Gang.MinCount) {
		p := pod(fmt.Sprintf("%s-%d", group.Name, rank), gpus)
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
		asked.Waiting = append(asked.Waiting, p)
	}
	x, err := f.reader.Read(f.tb.Context(), asked)
	if err != nil {
		f.tb.Fatal(err)
	}
	return x
}

// refuses asks the queue about a pod in no gang for which the framework found no node.
func (f *fleet) refuses(single *corev1.Pod) {
	f.tb.Helper()
	x, err := f.reader.Read(
		f.tb.Context(),
		waiting.Asked{Waiting: []*corev1.Pod{single}, Nodes: f.nodes, Now: f.clock.Now()},
	)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.queue.Refused(x)
}
