package nodefit_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/nodefit"
)

// of makes a list of pairs of a resource and a quantity.
func of(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// jobSet has one pod of each list.
func jobSet(asks ...corev1.ResourceList) *jobsetv1alpha2.JobSet {
	set := &jobsetv1alpha2.JobSet{}
	for i, limits := range asks {
		job := jobsetv1alpha2.ReplicatedJob{Name: []string{"launcher", "node"}[i]}
		job.Template.Spec.Template.Spec.Containers = []corev1.Container{
			{Resources: corev1.ResourceRequirements{Limits: limits}},
		}
		set.Spec.ReplicatedJobs = append(set.Spec.ReplicatedJobs, job)
	}
	return set
}

// cluster returns a client of a cluster with these nodes, as the controller's cache stores them, and a class of
// devices.
func cluster(t *testing.T, nodes ...corev1.ResourceList) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{&resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "nic",
		},
		Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/nic")},
	}}
	for i, has := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
		node.Status.Capacity, node.Status.Allocatable = has, has
		kept, err := nodefit.Keep(node)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, kept.(*corev1.Node))
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestNodes_Unfit(t *testing.T) {
	t.Parallel()
	cpu, gpu := of("cpu", "200", "memory", "100Gi"), of("cpu", "96", "memory", "1000Gi", "nvidia.com/gpu", "8")
	for name, c := range map[string]struct {
		asks   []corev1.ResourceList
		nodes  []corev1.ResourceList
		shapes []corev1.ResourceList
		want   []string
	}{
		"fits": {asks: []corev1.ResourceList{of("cpu", "150"), of("nvidia.com/gpu", "8", "cpu", "96")}, nodes: []corev1.ResourceList{cpu, gpu}},
		"more than any": {
			asks: []corev1.ResourceList{of("nvidia.com/gpu", "16")}, nodes: []corev1.ResourceList{cpu, gpu},
			want: []string{"nvidia.com/gpu: a pod asks for 16, and no node of this cluster has more than 8"},
		},
		"what none has": {
			asks: []corev1.ResourceList{of("nvidia.com/gpuu", "1")}, nodes: []corev1.ResourceList{gpu},
			want: []string{"nvidia.com/gpuu: no node of this cluster offers it"},
		},
		"not together": {
			asks: []corev1.ResourceList{of("cpu", "1"), of("nvidia.com/gpu", "8", "cpu", "128")}, nodes: []corev1.ResourceList{cpu, gpu},
			want: []string{"a pod of node asks for 128 cpu, 8 nvidia.com/gpu, and no node of this cluster has all of it"},
		},
		"a shape holds it": {
			asks: []corev1.ResourceList{of("nvidia.com/gpu", "16")}, nodes: []corev1.ResourceList{gpu}, shapes: []corev1.ResourceList{of("nvidia.com/gpu", "16")},
		},
		"no shape holds it": {
			asks: []corev1.ResourceList{of("nvidia.com/gpu", "32")}, nodes: []corev1.ResourceList{gpu}, shapes: []corev1.ResourceList{of("nvidia.com/gpu", "16")},
			want: []string{"nvidia.com/gpu: a pod asks for 32, and no node of this cluster, and none that can be added, has more than 16"},
		},
		"from zero":          {asks: []corev1.ResourceList{of("nvidia.com/gpu", "16")}},
		"devices of a class": {asks: []corev1.ResourceList{of("example.com/nic", "4", "cpu", "8")}, nodes: []corev1.ResourceList{gpu}},
		"devices, and too much": {
			asks: []corev1.ResourceList{of("example.com/nic", "4", "cpu", "800")}, nodes: []corev1.ResourceList{gpu},
			want: []string{"cpu: a pod asks for 800, and no node of this cluster has more than 96"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := cluster(t, c.nodes...)
			nodes := nodefit.Nodes{Cache: there, Live: there, Shapes: c.shapes}
			if got := nodes.Unfit(t.Context(), jobSet(c.asks...)); !slices.Equal(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

// An extended resource that is broken now counts; cpu counts without the node's own reservation.
func TestKeep(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"a": "b", "feature.node.kubernetes.io/cpu-cpuid.AVX": "true"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels}}
	node.Spec = corev1.NodeSpec{
		ProviderID:    "b",
		Unschedulable: true,
		Taints:        []corev1.Taint{{Key: "c", Effect: corev1.TaintEffectNoSchedule}},
	}
	node.Status.Capacity, node.Status.Allocatable = of(
		"cpu",
		"96",
		"nvidia.com/gpu",
		"8",
	), of(
		"cpu",
		"90",
		"nvidia.com/gpu",
		"7",
	)
	kept, err := nodefit.Keep(node)
	if err != nil {
		t.Fatal(err)
	}
	has := kept.(*corev1.Node)
	if cpu, gpu := has.Status.Capacity["cpu"], has.Status.Capacity["nvidia.com/gpu"]; cpu.Value() != 90 ||
		gpu.Value() != 8 ||
		has.Labels["a"] != "b" || len(has.Labels) != 1 {
		t.Errorf("it keeps %+v", has)
	}
	if gpu := has.Status.Allocatable["nvidia.com/gpu"]; gpu.Value() != 7 || len(has.Status.Allocatable) != 1 ||
		len(has.Spec.Taints) != 1 || !has.Spec.Unschedulable || has.Spec.ProviderID != "" {
		t.Errorf("of its GPUs it keeps %+v, %+v", has.Status.Allocatable, has.Spec)
	}
	delete(node.Status.Allocatable, "nvidia.com/gpu")
	if kept, err = nodefit.Keep(
		node,
	); err != nil || kept.(*corev1.Node).Labels != nil ||
		kept.(*corev1.Node).Spec.Taints != nil {
		t.Errorf("of a node without GPUs it keeps %+v %v", kept, err)
	}
}
