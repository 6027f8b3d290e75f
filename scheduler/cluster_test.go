package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/probe"
	manifests "github.com/lockstep-project/lockstep/manifests/scheduler"
	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/start"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	namespace = "default"
	gpu       = corev1.ResourceName("nvidia.com/gpu")
	rankLabel = "batch.kubernetes.io/job-completion-index"
)

// shipped decodes the shipped configuration strictly, with the gates that the binary sets.
func shipped(tb testing.TB) *schedulerconfig.KubeSchedulerConfiguration {
	tb.Helper()
	if err := start.SetGates(utilfeature.DefaultMutableFeatureGate, probe.Offer{Mode: probe.Full}); err != nil {
		tb.Fatal(err)
	}
	object, _, err := configscheme.Codecs.UniversalDecoder().Decode(manifests.Config(), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		tb.Fatalf("the shipped configuration is a %T", object)
	}
	return config
}

// cluster is an API server's objects and the real scheduler.
type cluster struct {
	*fake.Clientset
	plugins *schedulerconfig.Plugins
	// stop ends the scheduler that runs.
	stop  context.CancelFunc
	mu    sync.Mutex
	bound map[string]string
}

// newCluster starts the scheduler on the nodes.
func newCluster(t *testing.T, nodes []*corev1.Node) *cluster {
	t.Helper()
	return newClusterWith(t, nodes, nil)
}

// newClusterWith adds a plugin that makes trouble before members are bound, nil for none.
func newClusterWith(t *testing.T, nodes []*corev1.Node, trouble *trouble) *cluster {
	t.Helper()
	c := &cluster{Clientset: fake.NewClientset(), bound: make(map[string]string)}
	c.PrependReactor("create", "pods", c.bind)
	for _, n := range nodes {
		if err := c.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	c.run(t, trouble)
	t.Cleanup(func() { c.stop() })
	return c
}

// restart ends the scheduler and starts another one.
func (c *cluster) restart(t *testing.T) {
	t.Helper()
	c.stop()
	c.run(t, nil)
}

// run starts a scheduler.
func (c *cluster) run(t *testing.T, trouble *trouble) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.stop = cancel
	config, registry := shipped(t), scheduler.Registry(timing.With(clock.RealClock{}))
	if trouble != nil {
		trouble.cluster = c
		join(config, registry, "Trouble", func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return trouble, nil
		})
	}
	c.launch(ctx, t, c, config, registry)
}

// join makes a plugin of the test's the first of its points.
func join(
	config *schedulerconfig.KubeSchedulerConfiguration, registry frameworkruntime.Registry,
	name string, factory frameworkruntime.PluginFactory,
) {
	registry[name] = factory
	all := &config.Profiles[0].Plugins.MultiPoint // what is enabled at its point only comes after these
	all.Enabled = slices.Insert(all.Enabled, 0, schedulerconfig.Plugin{Name: name})
}

// launch starts a scheduler that talks to the API server through the client. It ends with the context.
func (c *cluster) launch(
	ctx context.Context, tb testing.TB, client kubernetes.Interface,
	config *schedulerconfig.KubeSchedulerConfiguration, registry frameworkruntime.Registry,
) {
	tb.Helper()
	informers := kubescheduler.NewInformerFactory(client, 0, nil)
	recorder := profile.RecorderFactory(func(string) events.EventRecorderLogger { return silent{} })
	s, err := kubescheduler.New(ctx, client, informers, nil, recorder,
		kubescheduler.WithProfiles(config.Profiles...),
		kubescheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		kubescheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		kubescheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		kubescheduler.WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		tb.Fatal(err)
	}
	c.plugins = s.Profiles[scheduler.ProfileName].ListPlugins()
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		tb.Fatal(err)
	}
	go s.Run(ctx)
}

// trouble is a PreBind plugin that fails some pods some times, like a device whose allocation cannot be written.
type trouble struct {
	cluster *cluster
	mu      sync.Mutex
	fails   map[string]int
	// early are pods that were bound while one of their gang was failing.
	early []string
}

func (*trouble) Name() string { return "Trouble" }

func (*trouble) PreBindPreFlight(
	context.Context, fwk.CycleState, *corev1.Pod, string,
) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

func (x *trouble) PreBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fails[pod.Name] == 0 {
		return nil
	}
	x.fails[pod.Name]--
	x.cluster.mu.Lock()
	defer x.cluster.mu.Unlock()
	for name := range x.cluster.bound {
		x.early = append(x.early, name)
	}
	return fwk.AsStatus(errors.New("the claim's status could not be written"))
}

// bind is the binding subresource: it writes the node into the pod, once.
func (c *cluster) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || create.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, _ := create.GetObject().(*corev1.Binding)
	object, err := c.Tracker().Get(create.GetResource(), binding.Namespace, binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod, _ := object.DeepCopyObject().(*corev1.Pod)
	pod.Spec.NodeName = binding.Target.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, twice := c.bound[pod.Name]; twice {
		return true, nil, fmt.Errorf("%s is bound to %s already", pod.Name, at)
	}
	c.bound[pod.Name] = pod.Spec.NodeName
	return true, binding, c.Tracker().Update(create.GetResource(), pod, pod.Namespace)
}

// nodeOf is where a pod was bound, "" for nowhere.
func (c *cluster) nodeOf(pod string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bound[pod]
}

// add creates objects in the given order.
func (c *cluster) add(t *testing.T, objects ...any) {
	t.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *corev1.Pod:
			_, err = c.CoreV1().Pods(namespace).Create(t.Context(), o, metav1.CreateOptions{})
		case *schedulingv1beta1.PodGroup:
			_, err = c.SchedulingV1beta1().PodGroups(namespace).Create(t.Context(), o, metav1.CreateOptions{})
		case []*corev1.Pod:
			for _, pod := range o {
				c.add(t, pod)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// end deletes pods.
func (c *cluster) end(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		if err := c.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// waitBound waits until all pods are bound and returns their nodes.
func (c *cluster) waitBound(t *testing.T, pods []*corev1.Pod) []string {
	t.Helper()
	return c.waitBoundFor(t, pods, 15*time.Second)
}

func (c *cluster) waitBoundFor(t *testing.T, pods []*corev1.Pod, limit time.Duration) []string {
	t.Helper()
	nodes := make([]string, len(pods))
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, limit, true,
		func(context.Context) (bool, error) {
			for i, pod := range pods {
				if nodes[i] = c.nodeOf(pod.Name); nodes[i] == "" {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		t.Fatalf("not all members were bound: %v; %s", nodes, c.verdict(t, pods[0]))
	}
	return nodes
}

// waitRejected waits for the group's verdict and returns it.
func (c *cluster) waitRejected(t *testing.T, group string) string {
	t.Helper()
	var message string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 15*time.Second, true,
		func(ctx context.Context) (bool, error) {
			g, err := c.SchedulingV1beta1().PodGroups(namespace).Get(ctx, group, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			condition := apimeta.FindStatusCondition(g.Status.Conditions, explanation.Condition)
			if condition == nil || condition.Status != metav1.ConditionTrue {
				return false, nil
			}
			message = condition.Message
			return true, nil
		})
	if err != nil {
		t.Fatalf("gang %s was not rejected: %v", group, err)
	}
	return message
}

func (c *cluster) verdict(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	if pod.Spec.SchedulingGroup == nil {
		return "a single pod"
	}
	g, err := c.SchedulingV1beta1().
		PodGroups(namespace).
		Get(t.Context(), *pod.Spec.SchedulingGroup.PodGroupName, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(g.Status.Conditions)
}

// cliques makes cliques × size nodes of four GPUs, in an order that says nothing.
func cliques(cliques, size int) []*corev1.Node {
	var nodes []*corev1.Node
	for c := range cliques {
		for n := range size {
			name := nodeName(c, n)
			has := corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
				corev1.ResourcePods: resource.MustParse("110"), gpu: resource.MustParse("4"),
			}
			nodes = append(nodes, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{
					corev1.LabelHostname: name,
					topology.LabelClique: fmt.Sprint("fabric.", c),
					"example.com/rack":   fmt.Sprint("r", c/2),
				}},
				Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
			})
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

func nodeName(clique, node int) string { return fmt.Sprintf("c%d-n%d", clique, node) }

// gang makes a PodGroup of size members of whole nodes, minCount of which must start together.
func gang(name string, size int, required string) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: types.UID(name),
			Annotations: map[string]string{topology.AnnotationRequiredTopology: required},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)},
		}},
	}
	pods := make([]*corev1.Pod, size)
	for rank := range pods {
		pods[rank] = pod(fmt.Sprintf("%s-%d", name, rank), "4")
		pods[rank].Labels = map[string]string{rankLabel: strconv.Itoa(rank)}
		pods[rank].Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
	return group, pods
}

func pod(name, gpus string) *corev1.Pod {
	asks := corev1.ResourceList{gpu: resource.MustParse(gpus), corev1.ResourceCPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			Namespace:         namespace,
			UID:               types.UID(name),
			CreationTimestamp: metav1.Now(),
		},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler.ProfileName,
			Containers: []corev1.Container{
				{Name: "main", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}},
			},
		},
	}
}

// silent drops events.
type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
func (s silent) WithLogger(klog.Logger) events.EventRecorderLogger                           { return s }
