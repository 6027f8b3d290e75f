package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/tools/clientcmd"
)

// Replica is one of several lockstep-controllers, or lockstep-schedulers, that compete for a lease. One that ends by
// itself is not started again.
type Replica struct {
	// Name is the component's.
	Name string
	// Webhooks is the address on loopback at which a controller answers the API server; empty for a scheduler.
	Webhooks string

	cluster *Cluster
	process *process
}

// DismissController stops the lockstep-controller that runs alone, if it still does, so that replicas can take its
// place. The API server calls webhooks at WebhookAddress as before.
func (c *Cluster) DismissController(ctx context.Context) {
	if old := c.withdraw(controllerName); old != nil {
		old.stop(ctx)
	}
}

// DismissScheduler does the same with the lockstep-scheduler.
func (c *Cluster) DismissScheduler(ctx context.Context) {
	if old := c.withdraw(c.plan.scheduler().name); old != nil {
		old.stop(ctx)
	}
}

// WebhookAddress is the address on loopback at which the API server calls lockstep-controller's webhooks.
func (c *Cluster) WebhookAddress() string { return loopback(c.plan.ports.controllerWebhook) }

// ServerAddress is the address on loopback at which the API server serves.
func (c *Cluster) ServerAddress() string { return loopback(c.plan.ports.apiserver) }

// StartReplica starts one more lockstep-controller, on ports of its own, which works while it holds the lease. It
// reaches the API server at an address on loopback. StartReplica returns when the replica is ready.
func (c *Cluster) StartReplica(ctx context.Context, name, server string) (*Replica, error) {
	return c.startReplica(ctx, c.plan.access.controllerKubeconfig, name, server,
		func(replica plan, kubeconfig string) component {
			replica.access.controllerKubeconfig = kubeconfig
			child := replica.controller()
			// As installed: elected, and without a status server, of whose addresses pods know one only.
			child.args = append(child.args, "--leader-elect=true", "--feature-gates=TrainJobStatus=false")
			return child
		})
}

// StartSchedulerReplica starts one more lockstep-scheduler, with the shipped configuration, on a port of its own. It
// reaches the API server at an address on loopback. StartSchedulerReplica returns when the replica is ready, which one
// that stands by is too.
func (c *Cluster) StartSchedulerReplica(ctx context.Context, name, server string) (*Replica, error) {
	return c.startReplica(ctx, c.plan.access.schedulerKubeconfig, name, server,
		func(replica plan, kubeconfig string) component {
			replica.access.schedulerKubeconfig = kubeconfig
			child := replica.scheduler()
			child.revivable = false
			return child
		})
}

// startReplica starts one more of a component, which planned makes of a plan with ports of its own, and of the
// component's kubeconfig with another address of the API server.
func (c *Cluster) startReplica(
	ctx context.Context,
	kubeconfig, name, server string,
	planned func(replica plan, kubeconfig string) component,
) (*Replica, error) {
	own, err := choosePorts(0)
	if err != nil {
		return nil, err
	}
	defer own.releaseAll()
	via, err := c.kubeconfigVia(kubeconfig, name, server)
	if err != nil {
		return nil, err
	}
	replica := c.plan
	replica.ports = own
	child := planned(replica, via)
	child.name += "-" + name
	return c.join(ctx, child, own)
}

// join starts a replica on ports of its own, and returns when it is ready.
func (c *Cluster) join(ctx context.Context, child component, own ports) (*Replica, error) {
	own.release(child.ports...)
	c.launching.Lock()
	p, err := c.spawn(child, 0)
	c.launching.Unlock()
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A replica that loses its lease ends, and another one takes over. So the end of a replica is reported by Runs, and
	// is no death of the cluster, which would fail the start of the next component.
	go func() {
		<-p.exited
		if c.disown(p) {
			cancel(p.death())
		}
	}()
	if err := c.await(starting, []*process{p}); err != nil {
		if death, ok := errors.AsType[*DeathError](context.Cause(starting)); ok {
			return nil, death
		}
		return nil, err
	}
	replica := &Replica{Name: child.name, cluster: c, process: p}
	if len(child.ports) > 1 {
		replica.Webhooks = loopback(own.controllerWebhook)
	}
	return replica, nil
}

// kubeconfigVia writes a kubeconfig again with another address of the API server.
func (c *Cluster) kubeconfigVia(original, name, server string) (string, error) {
	config, err := clientcmd.LoadFromFile(original)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of a component: %w", err)
	}
	for _, of := range config.Clusters {
		of.Server = (&url.URL{Scheme: "https", Host: server}).String()
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("encoding the kubeconfig of replica %s: %w", name, err)
	}
	return c.plan.state.write(content, "config", "replica-"+name+".kubeconfig")
}

// Stop asks the replica to end, and returns when it has.
func (r *Replica) Stop(ctx context.Context) {
	if p := r.cluster.dismiss(r.Name); p != nil {
		p.stop(ctx)
	}
}

// Kill ends the replica at once, as kill -9 does.
func (r *Replica) Kill() error {
	p := r.cluster.dismiss(r.Name)
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", r.Name, err)
	}
	<-p.exited
	return nil
}

// Runs reports whether the replica has not ended.
func (r *Replica) Runs() bool {
	select {
	case <-r.process.exited:
		return false
	default:
		return true
	}
}
