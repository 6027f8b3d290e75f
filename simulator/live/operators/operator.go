// Package operators runs controllers of other projects, as they were released, beside the embedded cluster: to see that
// Lockstep places the gangs that they make.
package operators

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// Module is a release of a Go module.
type Module struct {
	Path, Version string
}

func (m Module) String() string { return m.Path + "@" + m.Version }

// Operator is a controller of another project.
type Operator struct {
	// Name is that of its process.
	Name string
	// Module has its command, in the package Main below it, and the files of Definitions: patterns of CRDs that it
	// needs.
	Module      Module
	Main        string
	Definitions []string
	// Replacing are modules for those that its own names as folders and does not have.
	Replacing []Module
	// Groups is set if the operator writes PodGroups of scheduler-plugins, whose CRD must be there.
	Groups bool
	// Webhooks are the names of its webhook configurations, Folder is one outside of the cluster's that it needs; both
	// are deleted when it stops.
	Webhooks []string
	Folder   string
	// start starts it, and returns when it is ready.
	start func(ctx context.Context, at place) error
}

// place is a cluster on which an operator is started.
type place struct {
	*cluster.Cluster

	operator Operator
	// folder is that of its module, binary its executable.
	folder, binary string
}

// run starts the operator's process, and returns when it is ready.
func (p place) run(ctx context.Context, guest cluster.Guest) error {
	guest.Name, guest.Version, guest.Binary = p.operator.Name, p.operator.Module.Version, p.binary
	return p.StartGuest(ctx, guest)
}

// listen returns ports on loopback for the operator's probes and webhooks.
func (p place) listen() (probes, webhooks int, err error) {
	if probes, err = p.FreePort(); err != nil {
		return 0, 0, err
	}
	webhooks, err = p.FreePort()
	return probes, webhooks, err
}

// All returns the operators, in the order of their names.
func All() []Operator {
	return []Operator{
		kubeRay(),
		kubeRayAlone(),
		leaderWorkerSet(),
		mpi(),
		trainer(),
		training(),
		volcano(),
		volcanoScheduler(),
	}
}

// schedulerPlugins has the CRD of the PodGroups that most operators write.
func schedulerPlugins() Module { return Module{"sigs.k8s.io/scheduler-plugins", "v0.35.4-devel"} }

// defineGroups has a cluster serve the PodGroups of scheduler-plugins.
func defineGroups(ctx context.Context, c *cluster.Cluster) error {
	folder, err := schedulerPlugins().folder(ctx)
	if err != nil {
		return err
	}
	return apply(ctx, c, folder, "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml")
}

// Start starts the operator on a cluster, and returns when it is ready. binary is its executable, as Build returns it.
func (o Operator) Start(ctx context.Context, c *cluster.Cluster, binary string) error {
	folder, err := o.Module.folder(ctx)
	if err != nil {
		return err
	}
	if o.Groups {
		if err := defineGroups(ctx, c); err != nil {
			return err
		}
	}
	for _, pattern := range o.Definitions {
		if err := apply(ctx, c, folder, pattern); err != nil {
			return err
		}
	}
	if err := o.start(ctx, place{c, o, folder, binary}); err != nil {
		return fmt.Errorf("starting %s: %w", o.Name, err)
	}
	return nil
}

// Stop stops the operator. Its CRDs stay; its webhooks, which would not be answered, are deleted.
func (o Operator) Stop(ctx context.Context, c *cluster.Cluster) error {
	for _, name := range o.Webhooks {
		if err := c.DeleteWebhooks(ctx, name, name); err != nil {
			return fmt.Errorf("stopping %s: %w", o.Name, err)
		}
	}
	if o.Folder != "" {
		if err := os.RemoveAll(o.Folder); err != nil {
			return fmt.Errorf("stopping %s: %w", o.Name, err)
		}
	}
	if err := c.StopGuest(ctx, o.Name); err != nil {
		return fmt.Errorf("stopping %s: %w", o.Name, err)
	}
	return nil
}

// apply applies the files of a pattern below a folder.
func apply(ctx context.Context, c *cluster.Cluster, folder, pattern string) error {
	content, err := cluster.JoinFiles(folder, pattern)
	if err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	if err := c.ApplyYAML(ctx, content); err != nil {
		return fmt.Errorf("applying %s: %w", pattern, err)
	}
	return nil
}

// webhooks reads the webhook configurations of a file of the operator's module.
func (p place) webhooks(file string) ([]*unstructured.Unstructured, error) {
	content, err := cluster.JoinFiles(p.folder, file)
	if err != nil {
		return nil, fmt.Errorf("reading webhooks: %w", err)
	}
	objects, err := render.Objects(content)
	if err != nil {
		return nil, fmt.Errorf("reading webhooks: %w", err)
	}
	return objects, nil
}

// health is the URL at which an operator at a port answers that it is ready.
func health(port int, path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }

// onLoopback is the flag by which an operator listens at a port.
func onLoopback(flag string, port int) string { return fmt.Sprintf("%s=127.0.0.1:%d", flag, port) }
