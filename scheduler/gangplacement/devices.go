package gangplacement

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/reservation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// followDevices makes the stock of devices, and tells the lot of changes that may help a gang: what is published, and what is
// given back.
func (p *GangPlacement) followDevices(handle fwk.Handle, shared *devices.Shared) error {
	if p.stock = shared.Stock(handle.SharedDRAManager()); p.stock == nil {
		return nil
	}
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
	for _, of := range []struct {
		informer cache.SharedIndexInformer
		follow   cache.ResourceEventHandlerFuncs
	}{
		{resources.ResourceSlices().Informer(), published},
		{resources.DeviceClasses().Informer(), published},
		{resources.ResourceClaims().Informer(), released},
	} {
		if _, err := of.informer.AddEventHandler(of.follow); err != nil {
			return fmt.Errorf("watching devices: %w", err)
		}
	}
	return nil
}

// withDevices are the questions about a gang with the devices in them that its members claim, and what adds devices to units.
type withDevices struct {
	questions []devices.Asked
	holds     func([]snapshot.Unit) []snapshot.Unit
}

// withDevices puts devices into the question, if the gang claims any.
func (p *GangPlacement) withDevices(
	ctx context.Context, q question, view snapshot.View, ledger topology.Ledger, gang topology.Gang,
) (withDevices, error) {
	without := []devices.Asked{{Ledger: ledger, Gang: gang}}
	if p.stock == nil {
		return withDevices{questions: without}, nil
	}
	holds := func(asked devices.Asked) func([]snapshot.Unit) []snapshot.Unit {
		return func(units []snapshot.Unit) []snapshot.Unit { return p.stock.Holds(ctx, asked, units) }
	}
	if !p.stock.Claims(q.waiting) {
		return withDevices{without, holds(without[0])}, nil
	}
	asked, err := p.stock.Ask(ctx, devices.Question{
		Nodes: q.parent.Nodes, Group: q.group, Waiting: q.waiting, Ledger: ledger, Gang: gang,
		Resources: view.Resources(), Now: q.began,
	})
	if err != nil {
		return withDevices{}, fmt.Errorf("devices of gang %s: %w", gang.Name, err)
	}
	return withDevices{asked, holds(asked[0])}, nil
}

// placeAnywhere places the gang in its turn. Of several choices of shared devices the first is taken whose nodes hold the gang. It
// returns the ledger that the gang was placed in.
func (p *GangPlacement) placeAnywhere(
	ctx context.Context, q question, view snapshot.View, questions []devices.Asked,
) (decision.Answer, topology.Ledger) {
	first, ledger := p.placeInTurn(ctx, q, view, questions[0])
	for _, other := range questions[1:] {
		if first.Refusal == nil {
			break
		}
		if answer, in := p.placeInTurn(ctx, q, view, other); answer.Refusal == nil {
			first, ledger = answer, in
		}
	}
	return first, ledger
}

// behind is the question about a gang and the first of the queue, with the devices of both if they can be counted together, and
// what adds devices to units.
func (p *GangPlacement) behind(
	ctx context.Context, q question, view snapshot.View, asked devices.Asked, head *reservation.Head,
) (devices.Pair, func([]snapshot.Unit) []snapshot.Unit, error) {
	first, err := view.Gang(head.Group, head.Waiting, nil, nil)
	if err != nil {
		return devices.Pair{}, nil, fmt.Errorf("reading gang %s: %w", head.Key, err)
	}
	alone := devices.Pair{Ledger: asked.Ledger, Gang: asked.Gang, First: first}
	if p.stock == nil || !p.stock.Claims(head.Waiting) {
		return alone, q.holds, nil
	}
	pair, err := p.stock.Beside(ctx, asked, devices.Question{
		Nodes:     q.parent.Nodes,
		Group:     head.Group,
		Waiting:   head.Waiting,
		Gang:      first,
		Resources: view.Resources(),
		Now:       q.began,
	})
	if err != nil {
		klog.FromContext(ctx).
			V(3).
			Info("The place of the first is kept without its devices", "podGroup", head.Key, "err", err)
		return alone, q.holds, nil
	}
	return pair, func(units []snapshot.Unit) []snapshot.Unit { return p.stock.HoldsOf(ctx, pair, units) }, nil
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
