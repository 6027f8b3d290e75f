package devices

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

const connectionKey fwk.StateKey = Name + "/connection"

// connection is the ComputeDomain that gives the pod of a cycle its channel, and those that are assumed to have left.
type connection struct {
	domain  types.UID
	vacated map[types.UID]bool
}

// Clone returns the connection itself, which is never changed.
func (c *connection) Clone() fwk.StateData { return c }

// connect notes the ComputeDomain that gives the pod its channel, if it has one. A nil stock, of a cluster without
// devices, notes nothing.
func (s *Stock) connect(state fwk.CycleState, pod *corev1.Pod) {
	if s == nil || len(pod.Spec.ResourceClaims) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if domain, _ := s.domainOf(pod, nil); domain != "" {
		state.Write(connectionKey, &connection{domain, maps.Clone(s.vacated)})
	}
}

// Filter rejects nodes in another ComputeDomain for pods with a channel: those in no gang, and members whose nodes the
// framework chooses. Evicting other pods there would not help; the node leaves its ComputeDomain by itself.
func (p *LockstepDynamicResources) Filter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo,
) *fwk.Status {
	if data, err := state.Read(connectionKey); err == nil {
		in := types.UID(node.Node().Labels[labelDomain])
		if c, ok := data.(*connection); ok && in != "" && in != c.domain && !c.vacated[in] {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node is still in another ComputeDomain")
		}
	}
	return p.DynamicResources.Filter(ctx, state, pod, node)
}

// vacate supposes that the ComputeDomains of these units leave their nodes.
func (s *Stock) vacate(gone []snapshot.Unit) {
	s.vacated = map[types.UID]bool{}
	for _, u := range gone {
		if u.Domain != "" {
			s.vacated[u.Domain] = true
		}
		for _, claim := range s.claimsOf(u) {
			if domain, _ := channelOf(claim); domain != "" {
				s.vacated[domain] = true
			}
		}
	}
}
