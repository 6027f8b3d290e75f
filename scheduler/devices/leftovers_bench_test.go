package devices_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// A gang that claims devices reads its question on a full fleet, with four claims on each node: on a quiet one, and on
// one on which a pod has left since the last question, so that its claims may be left over.
func BenchmarkLeftovers(b *testing.B) {
	for _, size := range []int{1000, 4000, 16000} {
		group, members, itsClaims := schedulertest.PairGang("waits", 1, 1, "gpu")
		all := []*resourcev1.ResourceClaim{itsClaims[0].(*resourcev1.ResourceClaim)}
		var published []*resourcev1.ResourceSlice
		var nodes []fwk.NodeInfo
		var last *corev1.Pod
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		pods := factory.Core().V1().Pods()
		for _, node := range schedulertest.Cliques(size/20, 20) {
			info := framework.NewNodeInfo()
			info.SetNode(node)
			nodes, published = append(nodes, info), append(published, devicestest.Slice(node, 4, 0))
			for i := range 4 {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: schedulertest.Namespace,
						Name:      fmt.Sprint(node.Name, "-", i),
					},
				}
				pod.UID = types.UID(pod.Name)
				if err := pods.Informer().GetStore().Add(pod); err != nil {
					b.Fatal(err)
				}
				last = memberOf(pod)
				claim := schedulertest.PodClaim(last, "devices", devicestest.Pairs(1, "gpu"))
				schedulertest.Allocate(pod, claim, devicestest.Allocation(node.Name, 4))
				all = append(all, claim)
			}
		}
		reader := &waiting.Reader{
			Indices: snapshot.NewIndices(nil, nodehealth.Rules{}),
			Stock: new(devices.Shared).Stock(devices.NewFixed(published,
				[]*resourcev1.DeviceClass{devicestest.Class("gpu"), devicestest.Class("nic")}, all)),
			Lives: func(namespace string, of resourcev1.ResourceClaimConsumerReference) bool {
				pod, err := pods.Lister().Pods(namespace).Get(of.Name)
				return err == nil && pod.UID == of.UID && !snapshot.Ended(pod)
			},
		}
		ask := func() {
			if _, err := reader.Read(b.Context(), waiting.Asked{
				Group: group, Waiting: members, Nodes: nodes, Now: time.Now(),
			}); err != nil {
				b.Fatal(err)
			}
		}
		ask() // the first question reads all slices and claims
		b.Run(fmt.Sprintf("nodes=%d/quiet", size), func(b *testing.B) {
			for b.Loop() {
				ask()
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/left", size), func(b *testing.B) {
			for b.Loop() {
				reader.Stock.Departed(last)
				ask()
			}
		})
	}
}

// memberOf is a pod with a container that may have claims, of the name of another one.
func memberOf(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	out.Spec.Containers = []corev1.Container{{Name: "main"}}
	return out
}
