package devices_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// noGroups lists no PodGroup.
type noGroups struct{}

func (noGroups) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	return nil, apierrors.NewNotFound(schedulingv1beta1.Resource("podgroups"), name)
}

// Nodes with the taint of another team are no choice that is tried: of the first 128 choices all have it.
func TestSharedClaim_BarredChoicesAreNotCounted(t *testing.T) {
	for _, barredNodes := range []int{100, 150} {
		const size = 200
		group, members, claims := schedulertest.PairGang("shares", 2, 1, "gpu")
		group.Annotations[topology.AnnotationSpreadMax] = "2"
		group.Annotations[topology.AnnotationSpreadTopology] = "clique"
		claim := nameOne(members, claims)
		var published []*resourcev1.ResourceSlice
		var nodes []fwk.NodeInfo
		fleet := schedulertest.Cliques(1, size)
		slices.SortFunc(fleet, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
		for i, node := range fleet {
			if i < barredNodes {
				node.Spec.Taints = append(node.Spec.Taints,
					corev1.Taint{Key: "team", Value: "b", Effect: corev1.TaintEffectNoSchedule})
			}
			info := framework.NewNodeInfo()
			info.SetNode(node)
			nodes, published = append(nodes, info), append(published, devicestest.Slice(node, 1, 0))
		}
		reader := &waiting.Reader{
			Indices: snapshot.NewIndices(nil, nodehealth.Rules{}),
			Groups:  func() fwk.PodGroupLister { return noGroups{} },
			Stock: new(devices.Shared).Stock(devices.NewFixed(published,
				[]*resourcev1.DeviceClass{devicestest.Class("gpu"), devicestest.Class("nic")},
				[]*resourcev1.ResourceClaim{claim})),
		}
		x, err := reader.Read(t.Context(), waiting.Asked{Group: group, Waiting: members, Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		q := waiting.New(timing.Timing{Clock: clock.RealClock{}, Beside: func(func()) {}}, contention.DefaultPolicy())
		q.Wakes(func(contention.ID) {})
		if out := q.Turn(x); out.Placed == nil {
			t.Errorf(
				"%d of %d nodes are tainted: %d choices, not placed: %+v",
				barredNodes,
				size,
				len(x.Choices),
				out.Wait,
			)
		}
	}
}
