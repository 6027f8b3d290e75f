package cluster

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// Replica is one of several lockstep-controllers that compete for the lease.
type Replica struct {
	// Name is the component's.
	Name string
	// Webhooks is the address on loopback at which the replica answers the API server.
	Webhooks string

	cluster *Cluster
	process *process
}

// DismissController stops the lockstep-controller that runs alone, if it still does, so that replicas can take its place. The API server
// calls webhooks at WebhookAddress as before.
func (c *Cluster) DismissController(ctx context.Context) {
	if old := c.dismiss(controllerName); old != nil {
		old.stop(ctx)
	}
}

// WebhookAddress is the address on loopback at which the API server calls lockstep-controller's webhooks.
func (c *Cluster) WebhookAddress() string { return loopback(c.plan.ports.controllerWebhook) }

// ServerAddress is the address on loopback at which the API server serves.
func (c *Cluster) ServerAddress() string { return loopback(c.plan.ports.apiserver) }

// StartReplica starts one more lockstep-controller, on ports of its own, which works while it holds the lease. It reaches the API server
// at an address on loopback. StartReplica returns when the replica is ready.
func (c *Cluster) StartReplica(ctx context.Context, name, server string) (*Replica, error) {
	own, err := choosePorts(0)
	if err != nil {
		return nil, err
	}
	defer own.releaseAll()
	replica := c.plan
	replica.ports = own
	if replica.access.controllerKubeconfig, err = c.kubeconfigVia(name, server); err != nil {
		return nil, err
	}
	child := replica.controller()
	child.name = controllerName + "-" + name
	// As installed: elected, and without a status server, of whose addresses pods know one only.
	child.args = append(child.args, "--leader-elect=true", "--feature-gates=TrainJobStatus=false")
	own.release(child.ports...)
	if err := c.run(ctx, child); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == child.name })
	if i < 0 {
		return nil, fmt.Errorf("starting %s: %w", child.name, errNoController)
	}
	return &Replica{
		Name: child.name, Webhooks: loopback(own.controllerWebhook), cluster: c, process: c.processes[i],
	}, nil
}

// kubeconfigVia writes the controller's kubeconfig with another address of the API server.
func (c *Cluster) kubeconfigVia(name, server string) (string, error) {
	config, err := clientcmd.LoadFromFile(c.plan.access.controllerKubeconfig)
	if err != nil {
		return "", fmt.Errorf("reading the controller's kubeconfig: %w", err)
	}
	for _, of := range config.Clusters {
		of.Server = (&url.URL{Scheme: "https", Host: server}).String()
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("encoding the kubeconfig of replica %s: %w", name, err)
	}
	return c.plan.state.write(content, "config", "controller-"+name+".kubeconfig")
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
