package cluster

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The tests are black-box but for these: the parts of Start that can go wrong one by one.
var (
	OpenState   = openState
	ChoosePorts = choosePorts
	OnLoopback  = onLoopback

	MoveToLoopback = moveToLoopback
	Stamp          = stamp
)

// AsJobSet returns a webhook configuration as JobSet's deployment has it.
func AsJobSet(configuration *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return AsDeployed(configuration, "jobset", labelJobSet)
}

// AsKueue returns the objects of manifests as Kueue's deployment has them.
func AsKueue(content []byte, base string, authority []byte) ([]*unstructured.Unstructured, error) {
	return asKueueDeploys(content, base, authority, plan{}.kueueGroups())
}

// NewKueueKeys are the certificate of Kueue's webhooks and its authority.
func NewKueueKeys() (map[string][]byte, error) { return newKeys(kueueServing()) }

// KWOKConfig is KWOK's configuration for a fleet of so many nodes, in NVLink cliques or not.
func KWOKConfig(nodes int, cliques bool) ([]byte, error) {
	return plan{nodes: nodes, cliques: cliques}.kwokConfig()
}

// PlannedPorts returns the ports that are held for a run, and those that its components listen on, in order.
func PlannedPorts() (held, listened []int, err error) {
	chosen, err := choosePorts(0)
	if err != nil {
		return nil, nil, err
	}
	defer chosen.releaseAll()
	p := plan{state: &state{}, ports: chosen}
	for _, c := range []component{
		p.etcd(), p.apiserver(), p.controllerManager(), p.stockScheduler(), p.jobset(), p.kwok(), p.controller(),
		p.scheduler(), p.kueue(), p.trainer(Trainer{}),
	} {
		listened = append(listened, c.ports...)
	}
	listened = append(listened, chosen.kubelet)
	return slices.Sorted(maps.Keys(chosen.held)), slices.Sorted(slices.Values(listened)), nil
}

// Release gives a state directory up.
func (s *state) Release() error { return s.release() }

// NewComponent is a component that runs any command.
func NewComponent(name, binary string, args ...string) component {
	return component{name: name, binary: binary, args: args}
}

// Spawner and Process are the parts of process.go.
type (
	Spawner = spawner
	Process = process
)

// NewSpawner returns a spawner that lives as long as ctx.
func NewSpawner(ctx context.Context) *Spawner { return newSpawner(ctx) }

// Start starts a component.
func (s *spawner) Start(c component, log string) (*Process, error) { return s.start(c, log) }

// Exited is closed when the child has ended.
func (p *process) Exited() <-chan struct{} { return p.exited }

// Death describes the end of a child that has ended.
func (p *process) Death() *DeathError { return p.death() }

// Stop ends the child.
func (p *process) Stop(ctx context.Context) { p.stop(ctx) }

// Revives reports whether the child, which has ended, is started again.
func (p *process) Revives() bool { return p.revives() }

// Ready says that the child was ready.
func (p *process) Ready() { p.ready.Store(true) }

// Revivable is a component that is started again when it ends by itself.
func Revivable(c component) component { c.revivable = true; return c }

// PID is the child's process id.
func (p *process) PID() int { return p.pid() }

// Hosted is a process that stands for the pods of a Deployment.
type Hosted struct {
	User string
	// Pod are the arguments of the Deployment, Args all of the process.
	Pod, Args []string
}

// Host plans the processes that stand for the chart's Deployments, with their files in a state directory.
func Host(dir string) (map[string]Hosted, error) {
	s, err := openState(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.release() }()
	p, err := plan{state: s}.takeChart()
	if err != nil {
		return nil, err
	}
	return map[string]Hosted{
		controllerName: {User: p.controllerPod.user, Pod: p.controllerPod.args, Args: p.controller().args},
		schedulerName:  {User: p.schedulerPod.user, Pod: p.schedulerPod.args, Args: p.scheduler().args},
	}, nil
}
