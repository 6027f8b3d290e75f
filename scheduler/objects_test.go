package scheduler_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// patientWatches makes room for bursts: a fake watch panics when its reader is behind, a real one is slowed down.
var patientWatches = sync.OnceFunc(func() { watch.DefaultChanSize = 1 << 15 })

// listed is a cluster whose objects all exist before the scheduler starts: it lists them, in no particular order.
func listed(tb testing.TB, objects ...runtime.Object) *cluster {
	tb.Helper()
	c := unstarted(tb, objects...)
	c.start(tb)
	return c
}

// unstarted is the cluster alone.
func unstarted(tb testing.TB, objects ...runtime.Object) *cluster {
	tb.Helper()
	patientWatches()
	c := &cluster{Clientset: fake.NewSimpleClientset(), bound: make(map[string]string)}
	c.PrependReactor("*", "*", clienttesting.ObjectReaction(&versioned{ObjectTracker: c.Tracker()}))
	c.PrependReactor("create", "pods", c.bind)
	for _, o := range objects {
		if err := c.Tracker().Add(o); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// start starts the scheduler and returns when it has listed everything.
func (c *cluster) start(tb testing.TB) {
	tb.Helper()
	c.startFor(tb, c)
}

// startFor starts a scheduler that knows its API server as the client. It ends with the test.
func (c *cluster) startFor(tb testing.TB, client kubernetes.Interface) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	c.launch(ctx, tb, client, shipped(tb), scheduler.Registry(timing.With(clock.RealClock{})))
}

// versioned gives every write its resource version, as an API server does. Without it the scheduler takes an update of a
// waiting pod, such as its nomination, for one that it has seen already.
type versioned struct {
	clienttesting.ObjectTracker
	last atomic.Int64
}

func (v *versioned) stamp(o runtime.Object) (runtime.Object, error) {
	stamped := o.DeepCopyObject()
	m, err := meta.Accessor(stamped)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(strconv.FormatInt(v.last.Add(1)+1_000_000, 10))
	return stamped, nil
}

func (v *versioned) Create(
	r schema.GroupVersionResource, o runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	stamped, err := v.stamp(o)
	if err != nil {
		return err
	}
	return v.ObjectTracker.Create(r, stamped, ns, opts...)
}

func (v *versioned) Update(
	r schema.GroupVersionResource, o runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	stamped, err := v.stamp(o)
	if err != nil {
		return err
	}
	return v.ObjectTracker.Update(r, stamped, ns, opts...)
}

func (v *versioned) Patch(
	r schema.GroupVersionResource, o runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	stamped, err := v.stamp(o)
	if err != nil {
		return err
	}
	return v.ObjectTracker.Patch(r, stamped, ns, opts...)
}

// as lists objects of one kind as objects.
func as[T runtime.Object](list ...T) []runtime.Object {
	out := make([]runtime.Object, len(list))
	for i, o := range list {
		out[i] = o
	}
	return out
}

// nobodyBound fails if a pod has a node.
func (c *cluster) nobodyBound(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		if at := c.nodeOf(p.Name); at != "" {
			t.Errorf("%s is on %s, but its gang has no legal placement", p.Name, at)
		}
	}
}

// asks changes what a pod requests, in place.
func asks(p *corev1.Pod, name corev1.ResourceName, quantity string) {
	p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
	p.Spec.Containers[0].Resources.Limits[name] = resource.MustParse(quantity)
}

// service is a pod without GPUs that runs on a node already.
func service(name, node string, labels map[string]string) *corev1.Pod {
	p := pod(name, "0")
	p.Labels, p.Spec.NodeName = labels, node
	return p
}

// ranked makes a PodGroup and its members that all are changed alike.
func ranked(
	name string, size int, required string, change func(*corev1.Pod),
) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := gang(name, size, required)
	for _, m := range members {
		change(m)
	}
	return group, members
}

// raise gives a gang a priority.
func raise(group *schedulingv1beta1.PodGroup, members []*corev1.Pod, priority int32) {
	group.Spec.Priority = &priority
	for _, m := range members {
		m.Spec.Priority = &priority
	}
}

// queuedAt says since when a gang waits, in seconds.
func queuedAt(group *schedulingv1beta1.PodGroup, second int) {
	at := time.Date(2026, 11, 21, 0, 0, second, 0, time.UTC).Format(time.RFC3339)
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, "lockstep.dev/queued-at", at)
}

// claim makes a PersistentVolumeClaim and the volume it is bound to, which can be reached from the nodes with one of the
// values of a label.
func claim(name, key string, values ...string) []runtime.Object {
	class, size := "shared", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:         size,
			AccessModes:      modes,
			StorageClassName: class,
			ClaimRef: &corev1.ObjectReference{
				Kind:      "PersistentVolumeClaim",
				Namespace: namespace,
				Name:      name,
				UID:       "u",
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: "/" + name},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: nodesWith(key, corev1.NodeSelectorOpIn, values...)},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	return []runtime.Object{volume, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: "u", ResourceVersion: "1",
			Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &class, VolumeName: name,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes, Capacity: size},
	}}
}

// storageClass is the class of the claims.
func storageClass() *storagev1.StorageClass {
	mode := storagev1.VolumeBindingImmediate
	return &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "shared", ResourceVersion: "1"},
		Provisioner: "example.com/shared", VolumeBindingMode: &mode,
	}
}

// mounts gives a pod a volume by its claim.
func mounts(p *corev1.Pod, claim string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}

// nodesWith selects nodes by a label.
func nodesWith(key string, operator corev1.NodeSelectorOperator, values ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}}
}

// by is an inter-pod term: pods with the label app, in one domain of the key.
func by(app, key string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key,
	}}
}

// node finds a node by name.
func node(nodes []*corev1.Node, name string) *corev1.Node {
	return nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })]
}

func basicPolicy() *schedulingv1beta1.BasicSchedulingPolicy {
	return &schedulingv1beta1.BasicSchedulingPolicy{}
}
