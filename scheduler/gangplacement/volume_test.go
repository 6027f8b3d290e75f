package gangplacement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// The volume that all members share can be reached from one clique only.
func TestVolumes_GangFollowsSharedVolume(t *testing.T) {
	t.Parallel()
	volume := append(claim("data", topology.LabelClique, "fabric.1"), storageClass())
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), volume)
	group, members := schedulertest.GangWith("reads", 4, "clique", func(p *corev1.Pod) { mounts(p, "data") })
	c.Create(t, group, members)
	if got := inOneClique(t, c.WaitBound(t, members)); got != "c1" {
		t.Errorf("the gang is in %s, its volume in c1", got)
	}
	group, waiting := schedulertest.GangWith("reads-too", 4, "clique", func(p *corev1.Pod) { mounts(p, "data") })
	c.Create(t, group, waiting)
	if why := c.WaitRejected(t, "reads-too"); !strings.Contains(why, refused) {
		t.Errorf("the gang is told %q, want %q in it", why, refused)
	}
	other, fits := schedulertest.Gang("other", 4, "clique")
	c.Create(t, other, fits)
	c.WaitBound(t, fits)
	c.ExpectUnbound(t, waiting)
}

// Each member has a volume on a disk of one host: the scheduler narrows the search to that host before its filters.
func TestVolumes_MembersFollowLocalDisks(t *testing.T) {
	t.Parallel()
	objects := append(schedulertest.Objects(schedulertest.Cliques(2, 4)...), runtime.Object(storageClass()))
	group, members := schedulertest.Gang("disks", 3, "clique")
	want := make([]string, len(members))
	for i, p := range members {
		disk := fmt.Sprint("disk-", i)
		want[i] = schedulertest.NodeName(1, i+1)
		objects = append(objects, claim(disk, corev1.LabelHostname, want[i])...)
		mounts(p, disk)
	}
	c := schedulertest.NewCluster(t, objects)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, want) {
		t.Errorf("members by rank are on %v, their disks on %v", got, want)
	}
}

// A claim that does not exist: the gang waits and its message says so, others start; the claim is created, and the gang
// starts.
func TestVolumes_GangWaitsForMissingClaim(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), storageClass())
	group, members := schedulertest.GangWith("early", 4, "clique", func(p *corev1.Pod) { mounts(p, "late") })
	c.Create(t, group, members)
	other, fits := schedulertest.Gang("other", 4, "clique")
	c.Create(t, other, fits)
	c.WaitBound(t, fits)
	c.WaitRejected(t, "early")
	c.ExpectUnbound(t, members)
	for _, o := range claim("late", topology.LabelClique, "fabric.0", "fabric.1") {
		if err := c.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	inOneClique(t, c.WaitBound(t, members))
}

// claim makes a PersistentVolumeClaim and the volume it is bound to, which can be reached from the nodes with one of
// the values of a label.
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
				Namespace: schedulertest.Namespace,
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
			Name: name, Namespace: schedulertest.Namespace, UID: "u", ResourceVersion: "1",
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
