package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// Options configure the cluster.
type Options struct {
	// Dir is the state directory; it is emptied first, and must be new, empty or an earlier run's.
	Dir string
	// Mode is the offer of the control plane: probe.Full, probe.Groups or probe.Resources.
	Mode probe.Mode
	// Kubernetes is the minor release of the control plane, one of Kubernetes(); empty for NewestKubernetes. Full and
	// Groups need the newest.
	Kubernetes string
	// Nodes are the fleet; KWOK plays their kubelets.
	Nodes []corev1.Node
	// Slices and Classes are those that DRA drivers publish on them.
	Slices  []resourcev1.ResourceSlice
	Classes []resourcev1.DeviceClass
	// NVLink configures the delays of the player of NVIDIA's DRA driver, where nodes are in NVLink cliques; the zero
	// value is as slow as theirs.
	NVLink nvlink.Settings
	// Bare leaves Lockstep out: Helm installs it, and RunInstalled runs the installed Deployments.
	Bare bool
	// Real is for nodes with kubelets that join: everything that they need of a control plane is there. With Bare,
	// JobSet and KWOK are not.
	Real *RealNodes
	// Kueue asks for Kueue too, which takes minutes to build the first time.
	Kueue bool
	// KueuePods has Kueue manage groups of plain pods, too.
	KueuePods bool
	// Native has the API server serve Kubernetes' own PodGroups instead of Lockstep's custom resources.
	Native bool
	// Values are those of the chart that differ from its own.
	Values map[string]any
	// Audit has the API server log the requests of Lockstep's components in AuditLog.
	Audit bool
	// Port is the API server's port on loopback; 0 chooses a free one.
	Port int
	// Report receives the progress of the cluster's start, in one line each.
	Report func(string)
}

// Cluster is a running embedded cluster.
type Cluster struct {
	// Admin is the administrator's access, Client and Dynamic are clients made of it; Client's PodGroups are those of
	// the mode.
	Admin   *rest.Config
	Client  kubernetes.Interface
	Dynamic dynamic.Interface

	plan    plan
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	probes  *http.Client
	spawner *spawner
	// stopSpawner ends the spawner's thread; call it only after the last child has ended.
	stopSpawner context.CancelFunc
	// stopServing ends the parts of the cluster that run in this process; call it before the API server ends.
	stopServing context.CancelFunc

	// launching is locked while a component is started in place of another.
	launching sync.Mutex

	mu        sync.Mutex
	processes []*process
	versions  []string
	stopping  bool
	died      chan *DeathError
}

// Start builds missing binaries and brings up a cluster whose nodes are ready and whose webhooks answer. On an error,
// and when ctx ends, nothing is left running. The caller calls Stop.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	wanted, err := choosePorts(options.Port)
	if err != nil {
		return nil, err
	}
	wanted.releaseAll()
	directory, err := openState(options.Dir)
	if err != nil {
		return nil, err
	}
	spawning, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &Cluster{
		plan: plan{
			state:     directory,
			mode:      options.Mode,
			nodes:     len(options.Nodes),
			audited:   options.Audit,
			bare:      options.Bare,
			real:      options.Real,
			values:    options.Values,
			kueuePods: options.KueuePods,
			native:    options.Native && options.Mode == probe.Resources,
			cliques: slices.ContainsFunc(
				options.Nodes,
				func(node corev1.Node) bool { return nvlink.InClique(&node) },
			),
		},
		died: make(chan *DeathError, 1), spawner: newSpawner(spawning), stopSpawner: stop,
	}
	if err := c.start(ctx, options); err != nil {
		c.Stop(context.WithoutCancel(ctx))
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, options Options) error {
	var err error
	if c.plan.binaries, err = Build(ctx, options.Report); err != nil {
		return err
	}
	minor := cmp.Or(options.Kubernetes, NewestKubernetes)
	if c.plan.binaries.kubernetes, err = buildKubernetes(ctx, minor, c.plan.binaries, options.Report); err != nil {
		return err
	}
	if options.Kueue {
		if err := c.plan.binaries.addKueue(ctx, options.Report); err != nil {
			return err
		}
	}
	// Only now, because a build can last minutes, and others may want ports meanwhile.
	if c.plan.ports, err = choosePorts(options.Port); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	options.Report("starting etcd and kube-apiserver " + c.plan.binaries.kubernetes.version)
	if err := c.run(ctx, c.plan.etcd()); err != nil {
		return err
	}
	if err := c.run(ctx, c.plan.apiserver()); err != nil {
		return err
	}
	if c.plan.real != nil && c.plan.bare {
		options.Report("starting kube-controller-manager and kube-scheduler")
		return c.run(ctx, c.plan.controllerManager(), c.plan.stockScheduler())
	}
	if err := c.populate(ctx, options); err != nil {
		return c.orDeath(err)
	}
	options.Report(fmt.Sprintf("adding %d nodes", len(options.Nodes)))
	if err := c.addNodes(ctx, options.Nodes); err != nil {
		return c.orDeath(err)
	}
	return c.orDeath(c.publishDevices(ctx, options))
}

// populate installs the objects that a cluster without kubelets needs, and runs its controllers and schedulers until a
// job could be created.
func (c *Cluster) populate(ctx context.Context, options Options) error {
	if err := c.install(ctx); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stopServing = stop
	if err := c.serveVolumes(serving); err != nil {
		return err
	}
	if err := c.connectNodes(serving, options.NVLink); err != nil {
		return err
	}
	c.serveLogs(serving)
	options.Report("starting the controllers and schedulers")
	children := []component{c.plan.controllerManager(), c.plan.stockScheduler(), c.plan.jobset(), c.plan.kwok()}
	if !c.plan.bare {
		children = append(children, c.plan.controller(), c.plan.scheduler())
	}
	if err := c.run(ctx, children...); err != nil {
		return err
	}
	if err := c.installWebhooks(ctx); err != nil {
		return err
	}
	if options.Kueue {
		options.Report("starting Kueue")
		if err := c.startKueue(ctx); err != nil {
			return err
		}
	}
	if err := c.offerStatusServer(ctx); err != nil {
		return err
	}
	return c.waitForAccount(ctx, metav1.NamespaceDefault)
}

// prepare writes the files that the children read, and makes our own clients.
func (c *Cluster) prepare() error {
	var err error
	if c.plan, err = c.plan.takeChart(); err != nil {
		return err
	}
	server := c.plan.ports.url("https", c.plan.ports.apiserver)
	c.plan.access, err = newAccess(
		c.plan.state,
		server,
		c.plan.controllerPod.user,
		c.plan.schedulerPod.user,
		c.plan.names(),
		c.plan.addresses()...)
	if err != nil {
		return err
	}
	c.Admin = c.plan.access.admin
	if c.Client, err = gangapi.Client(c.Admin, c.plan.mode.API()); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.Admin); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client.Discovery()))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.plan.access.certPEM)
	c.probes = &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}
	kwok, err := c.plan.kwokConfig()
	if err != nil {
		return err
	}
	if _, err := c.plan.state.write(kwok, "config", "kwok.yaml"); err != nil {
		return err
	}
	if _, err := c.plan.state.write([]byte(c.plan.jobsetConfig()), "config", "jobset.yaml"); err != nil {
		return err
	}
	_, err = c.plan.state.write([]byte(c.plan.auditPolicy()), "config", "audit.yaml")
	return err
}

// Alive returns a context that ends with parent, or when a component ends by itself: then its cause is the
// *DeathError. Only one caller sees the death.
func (c *Cluster) Alive(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case death := <-c.died:
			cancel(death)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// orDeath prefers a component's death as the explanation of an error.
func (c *Cluster) orDeath(err error) error {
	if err == nil {
		return nil
	}
	select {
	case death := <-c.died:
		return death
	default:
		return err
	}
}

// Kubeconfig is the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.plan.access.adminKubeconfig }

// ControllerMetrics returns the address of lockstep-controller's metrics. They have a certificate of the cluster's
// authority, and are for users with permission to get /metrics.
func (c *Cluster) ControllerMetrics() string {
	return c.plan.ports.url("https", c.plan.ports.controllerMetrics) + "/metrics"
}

// Dir is the state directory, as an absolute path.
func (c *Cluster) Dir() string { return c.plan.state.dir }

// Components lists the running components in the order in which they were started.
func (c *Cluster) Components() []Component {
	c.mu.Lock()
	defer c.mu.Unlock()
	components := make([]Component, len(c.processes))
	for i, p := range c.processes {
		components[i] = Component{Name: p.name, Version: c.versions[i], PID: p.pid()}
	}
	return components
}

// Stop ends every child, last started first, and gives the state directory up. It may be called more than once.
func (c *Cluster) Stop(ctx context.Context) {
	c.mu.Lock()
	stopped := c.stopping
	c.stopping = true
	processes := slices.Clone(c.processes)
	c.mu.Unlock()
	if stopped {
		return
	}
	if c.stopServing != nil {
		c.stopServing()
	}
	// Everything but the API server and etcd ends at once; those two last, so that the others can say goodbye.
	var group sync.WaitGroup
	for _, p := range processes[min(2, len(processes)):] {
		group.Go(func() { p.stop(ctx) })
	}
	group.Wait()
	for _, p := range slices.Backward(processes[:min(2, len(processes))]) {
		p.stop(ctx)
	}
	c.stopSpawner()
	c.plan.ports.releaseAll()
	if err := c.plan.state.release(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
