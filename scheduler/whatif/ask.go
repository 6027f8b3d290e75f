package whatif

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// asked is a question with the devices in it that members claim. There is at least one; of several any may be answered.
type asked struct {
	questions []devices.Asked
	// holds adds to units what devices they would give back.
	holds func([]snapshot.Unit) []snapshot.Unit
}

// ask puts what the waiting members claim into the question about their gang, as the scheduler does. The error wraps
// devices.ErrClaims if it is about what they claim.
func (s *stage) ask(
	ctx context.Context, view snapshot.View, q devices.Question,
) (asked, error) {
	out := asked{questions: []devices.Asked{{Ledger: q.Ledger, Gang: q.Gang}}}
	if s.stock.Claims(q.Waiting) {
		q.Nodes, q.Resources, q.Now = s.nodes, view.Resources(), s.now
		var err error
		if out.questions, err = s.stock.Ask(ctx, q); err != nil {
			return asked{}, fmt.Errorf("devices of gang %s: %w", q.Gang.Name, err)
		}
	}
	out.holds = func(units []snapshot.Unit) []snapshot.Unit { return s.stock.Holds(ctx, out.questions[0], units) }
	return out, nil
}

// behind is the question about a gang and the first of the queue, with the devices of both if they can be counted together, and what
// adds devices to units.
func (p *play) behind(
	ctx context.Context, view snapshot.View, with asked, question devices.Asked, first topology.Gang,
) (devices.Pair, func([]snapshot.Unit) []snapshot.Unit) {
	alone := devices.Pair{Ledger: question.Ledger, Gang: question.Gang, First: first}
	before := p.head.gang
	if !p.stock.Claims(before.waiting) {
		return alone, with.holds
	}
	pair, err := p.stock.Beside(ctx, question, devices.Question{
		Nodes:     p.nodes,
		Group:     before.group,
		Waiting:   before.waiting,
		Gang:      first,
		Resources: view.Resources(),
		Now:       p.now,
	})
	if err != nil { // the scheduler keeps the place without its devices then, too
		return alone, with.holds
	}
	return pair, func(units []snapshot.Unit) []snapshot.Unit { return p.stock.HoldsOf(ctx, pair, units) }
}

// release takes the devices back of pods that have left the stage.
func (s *stage) release(pods []*corev1.Pod) {
	gone := make(map[types.UID]bool, len(pods))
	groups := make(map[types.NamespacedName]bool)
	for _, pod := range pods {
		gone[pod.UID] = true
		if key, ok := snapshot.GroupOf(pod); ok && s.groups[key] != nil {
			groups[key] = true
		}
	}
	for _, info := range s.nodes {
		for _, stays := range info.GetPods() {
			if key, ok := snapshot.GroupOf(stays.GetPod()); ok {
				delete(groups, key)
			}
		}
	}
	for key := range groups {
		gone[s.groups[key].UID] = true
	}
	s.fixed.Release(func(r resourcev1.ResourceClaimConsumerReference) bool { return gone[r.UID] })
}

// wants is how many accelerators pods ask for, by resources of the kinds that count and by claims.
func (s *stage) wants(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) int64 {
	return snapshot.Accelerators(pods, s.accelerators) + s.stock.Wanted(group, pods)
}
