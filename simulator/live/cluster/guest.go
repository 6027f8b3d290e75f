package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// GuestNamespace is the namespace of the guests' objects.
const GuestNamespace = "guests"

// guestRights are those of guests: their projects define the needs of each.
const guestRights = `apiVersion: v1
kind: Namespace
metadata: {name: ` + GuestNamespace + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + GuestNamespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "` + guestUser + `"}]
`

// errNoGuest indicates that no guest of that name runs.
var errNoGuest = errors.New("no such guest runs")

// Guest is a program of another project that runs beside the cluster's components, such as a controller of jobs.
type Guest struct {
	Name, Version, Binary string
	// Args and Env, NAME=value, are those of its process.
	Args, Env []string
	// Ports are those of FreePort on which it listens.
	Ports []int
	// Health is the URL that answers 200 when it is ready.
	Health string
}

// FreePort returns a port on loopback that is held for a guest until it starts.
func (c *Cluster) FreePort() (int, error) {
	c.launching.Lock()
	defer c.launching.Unlock()
	listener, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("finding a free port: %v is no TCP address", listener.Addr())
	}
	c.plan.ports.held[address.Port] = listener
	return address.Port, nil
}

// GuestKubeconfig is the file by which guests reach the API server.
func (c *Cluster) GuestKubeconfig() string { return c.plan.access.guestKubeconfig }

// CertDir is the folder of a certificate for loopback, tls.crt and tls.key, which the API server trusts where
// ApplyGuestWebhooks registers it.
func (c *Cluster) CertDir() string { return c.plan.access.certDir }

// WriteState writes a file of the run, such as a guest's configuration, and returns its path.
func (c *Cluster) WriteState(content []byte, elements ...string) (string, error) {
	return c.plan.state.write(content, elements...)
}

// StartGuest starts a guest, and returns when it is ready.
func (c *Cluster) StartGuest(ctx context.Context, guest Guest) error {
	if err := c.applyYAML(ctx, []byte(guestRights)); err != nil {
		return err
	}
	return c.run(ctx, component{
		name:    guest.Name,
		version: guest.Version,
		binary:  guest.Binary,
		args:    guest.Args,
		env:     guest.Env,
		ports:   guest.Ports,
		health:  guest.Health,
	})
}

// StopGuest stops the guest of that name.
func (c *Cluster) StopGuest(ctx context.Context, name string) error {
	old := c.withdraw(name)
	if old == nil {
		return fmt.Errorf("stopping %s: %w", name, errNoGuest)
	}
	old.stop(ctx)
	return nil
}

// ApplyYAML applies the objects of a YAML stream, and waits until the API server serves every CRD.
func (c *Cluster) ApplyYAML(ctx context.Context, content []byte) error {
	if err := c.applyYAML(ctx, content); err != nil {
		return err
	}
	c.mapper.Reset()
	return c.waitForCRDs(ctx)
}

// ApplyGuestWebhooks registers webhook configurations of a guest, which answers them at a port on loopback with the
// certificate of CertDir, or with that of ServeAs if it registers its authority itself.
func (c *Cluster) ApplyGuestWebhooks(
	ctx context.Context,
	port int,
	configurations ...*unstructured.Unstructured,
) error {
	for _, configuration := range configurations {
		moved := configuration.DeepCopy()
		if err := moveToLoopback(moved, c.plan.ports.url("https", port), c.plan.access.certPEM); err != nil {
			return err
		}
		if err := c.Apply(ctx, moved); err != nil {
			return err
		}
	}
	return nil
}

// ServeAs writes the objects for a guest that manages the certificate of its own webhooks: the Secret, and its files
// into a folder.
func (c *Cluster) ServeAs(ctx context.Context, serving Serving, folder string) error {
	made, err := newKeys(serving)
	if err != nil {
		return err
	}
	for _, name := range []string{fileCert, fileKey} {
		if err := os.WriteFile(filepath.Join(folder, name), made[name], 0o600); err != nil {
			return fmt.Errorf("writing the certificate of %s: %w", serving.Service, err)
		}
	}
	if err := c.Apply(ctx, render.Namespace(serving.Namespace)); err != nil {
		return err
	}
	return c.Apply(ctx, made.secret(serving))
}
