package gangplacement

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// followDevices makes the stock of devices, and tells the lot of changes that may help a gang: what is published, and what is
// given back.
func (p *GangPlacement) followDevices(handle fwk.Handle) error {
	manager := handle.SharedDRAManager()
	if manager == nil {
		return nil
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	p.stock = devices.NewStock(manager, dynamicresources.AllocatorFeatures(features))
	resources := handle.SharedInformerFactory().Resource().V1()
	published := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.lot.Change() }, UpdateFunc: func(_, _ any) { p.lot.Change() },
		DeleteFunc: func(any) { p.lot.Change() },
	}
	released := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.lot.Change() },
		UpdateFunc: func(old, now any) {
			before, ok := old.(*resourcev1.ResourceClaim)
			after, same := now.(*resourcev1.ResourceClaim)
			if ok && same && before.Status.Allocation != nil && after.Status.Allocation == nil {
				p.lot.Change()
			}
		},
		DeleteFunc: func(any) { p.lot.Change() },
	}
	for of, follow := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		resources.ResourceSlices().Informer(): published, resources.DeviceClasses().Informer(): published,
		resources.ResourceClaims().Informer(): released,
	} {
		if _, err := of.AddEventHandler(follow); err != nil {
			return fmt.Errorf("watching devices: %w", err)
		}
	}
	return nil
}

// placeWithDevices places the gang in its turn, where the devices are that its members claim. It returns the ledger that it was
// placed in. Of several choices of shared devices the first is taken whose nodes hold the gang.
func (p *GangPlacement) placeWithDevices(
	ctx context.Context, q question, view snapshot.View, ledger topology.Ledger, gang topology.Gang,
) (decision.Answer, topology.Ledger, error) {
	if p.stock == nil || !p.stock.Claims(q.waiting) {
		return p.placeInTurn(q, view, ledger, gang), ledger, nil
	}
	asked, err := p.stock.Ask(ctx, devices.Question{
		Nodes: q.parent.Nodes, Group: q.group, Waiting: q.waiting, Ledger: ledger, Gang: gang,
	})
	if err != nil {
		return decision.Answer{}, ledger, fmt.Errorf("devices of gang %s: %w", gang.Name, err)
	}
	first := p.placeInTurn(q, view, asked[0].Ledger, asked[0].Gang)
	for _, other := range asked[1:] {
		if first.Refusal == nil {
			break
		}
		if answer := p.placeInTurn(q, view, other.Ledger, other.Gang); answer.Refusal == nil {
			first = answer
		}
	}
	return first, asked[0].Ledger, nil
}

// cannotAsk lets a gang wait whose claims cannot be asked for, and says why; anything else is a fault of ours.
func (p *GangPlacement) cannotAsk(
	ctx context.Context, q question, gang topology.Gang, err error,
) (*plan, *fwk.Status) {
	if !errors.Is(err, devices.ErrClaims) {
		p.observe(ctx, q, metrics.ResultError)
		return nil, fwk.AsStatus(err)
	}
	p.tell(q, refusal{explanation.WrongRequest, err.Error(), ruleRequest})
	p.lot.Park(q.group, snapshot.QueuedAt(q.group), gang.Name, q.seen)
	p.observe(ctx, q, metrics.ResultWrong)
	return nil, infeasible(q)
}

