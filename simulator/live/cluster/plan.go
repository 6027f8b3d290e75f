package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// Component is one running part of the cluster, as a user sees it.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
}

// component is one child to start: its command and its readiness check.
type component struct {
	name    string
	version string
	binary  string
	args    []string
	env     []string
	// ports are those that it listens on; they are held until it starts.
	ports []int
	// health is the URL that answers 200 when the component is ready; "" is ready at once.
	health string
	// revivable children are started again when they have ended by themselves, not by a fault.
	revivable bool
}

// plan is everything that the flags of the children depend on.
type plan struct {
	binaries Binaries
	state    *state
	ports    ports
	access   access
	// chart holds the objects that the chart installs, the pods are the processes that stand for those of its
	// Deployments.
	chart                       render.Rendered
	controllerPod, schedulerPod hosted
	mode                        probe.Mode
	nodes                       int
	// cliques is set if some nodes are in NVLink cliques.
	cliques bool
	// bare leaves Lockstep out, real is for nodes with kubelets.
	bare bool
	real *RealNodes
	// audited has the API server log requests.
	audited bool
	// native has the API server serve Kubernetes' own PodGroups in mode resources, too.
	native bool
	// extra are feature gates beside those of the mode.
	extra []string
	// kueuePods has Kueue manage groups of plain pods, too.
	kueuePods bool
	// values are those of the chart.
	values map[string]any
}

// gates are the feature gates of Kubernetes' own components in each mode (manifests/DESIGN.md).
func gates(mode probe.Mode) string {
	switch mode {
	case probe.Full:
		return "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,DRAWorkloadResourceClaims=true"
	case probe.Groups:
		return "GenericWorkload=true"
	default:
		return ""
	}
}

// gated returns the flags by which a component of Kubernetes gets the mode's feature gates; none in mode resources,
// which is for clusters whose administrator cannot set any.
func (p plan) gated() []string {
	if p.mode == probe.Resources && !p.native {
		return nil
	}
	mode := p.mode
	if p.native {
		mode = probe.Groups
	}
	return []string{"--feature-gates=" + strings.Join(append([]string{gates(mode)}, p.extra...), ",")}
}

func (p plan) etcd() component {
	return component{
		name:    "etcd",
		version: moduleVersion(p.binaries.ControlPlane, "go.etcd.io/etcd/server/v3"),
		binary:  p.binaries.ControlPlane,
		args: []string{
			"etcd", "--data-dir=" + p.state.path("etcd"),
			"--listen-client-url=" + p.ports.url("http", p.ports.etcd),
			"--listen-peer-url=" + p.ports.url("http", p.ports.etcdPeer),
		},
		ports:  []int{p.ports.etcd, p.ports.etcdPeer},
		health: p.ports.url("http", p.ports.etcd) + "/health",
	}
}

func (p plan) apiserver() component {
	binary, first := p.binaries.kubernetes.command("kube-apiserver")
	return component{
		name:    "kube-apiserver",
		version: p.binaries.kubernetes.version,
		binary:  binary,
		args: slices.Concat(first, []string{
			"--etcd-servers=" + p.ports.url("http", p.ports.etcd),
			fmt.Sprintf("--secure-port=%d", p.ports.apiserver),
			"--tls-cert-file=" + p.access.certFile, "--tls-private-key-file=" + p.access.keyFile,
			"--client-ca-file=" + p.access.certFile,
			// Without a front proxy's CA every component that authenticates requests logs that it is missing.
			"--requestheader-client-ca-file=" + p.access.certFile, "--requestheader-allowed-names=front-proxy",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--token-auth-file=" + p.access.tokenFile, "--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + p.access.accountKeyFile,
			"--service-account-signing-key-file=" + p.access.accountKeyFile,
			"--service-cluster-ip-range=10.0.0.0/24",
			"--profiling=false",
		}, p.listening(), p.gated(), p.groupAPI(), p.auditing()),
		ports:  []int{p.ports.apiserver},
		health: p.ports.url("https", p.ports.apiserver) + "/readyz",
	}
}

// groupAPI returns the flags by which the API server serves PodGroups.
func (p plan) groupAPI() []string {
	if p.mode == probe.Resources && !p.native {
		return nil
	}
	version := "v1beta1"
	if strings.HasPrefix(p.binaries.kubernetes.version, "v1.36.") {
		version = "v1alpha2"
	}
	return []string{"--runtime-config=scheduling.k8s.io/" + version + "=true"}
}

func (p plan) controllerManager() component {
	binary, first := p.binaries.kubernetes.command("kube-controller-manager")
	args := slices.Concat(first, []string{
		"--kubeconfig=" + p.access.adminKubeconfig,
		"--authentication-kubeconfig=" + p.access.adminKubeconfig,
		"--authorization-kubeconfig=" + p.access.adminKubeconfig,
		"--authentication-skip-lookup=true", "--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.controllerManager),
		"--tls-cert-file=" + p.access.certFile, "--tls-private-key-file=" + p.access.keyFile,
		"--controllers=" + strings.Join(p.controllers(), ","),
		"--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-job-syncs=20",
		// Pods get tokens, and the certificate by which they know the API server.
		"--service-account-private-key-file=" + p.access.accountKeyFile, "--root-ca-file=" + p.access.certFile,
	}, p.gated())
	if p.nodes > manyNodes {
		args = append(args, "--node-monitor-grace-period=3h")
	}
	return component{
		name: "kube-controller-manager", version: p.binaries.kubernetes.version, binary: binary, args: args,
		ports:  []int{p.ports.controllerManager},
		health: p.ports.url("https", p.ports.controllerManager) + "/healthz",
	}
}

// controllers are those of kube-controller-manager that a cluster without kubelets has work for.
func (p plan) controllers() []string {
	if p.real != nil {
		return p.real.controllers()
	}
	names := []string{
		"job-controller",
		"statefulset-controller",
		"garbage-collector-controller",
		"namespace-controller",
		"resourceclaim-controller",
		"disruption-controller",
		"node-lifecycle-controller",
		"taint-eviction-controller",
		"pod-garbage-collector-controller",
		"ttl-after-finished-controller",
		"serviceaccount-controller",
		"root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller",
		"persistentvolume-binder-controller",
		"persistentvolumeclaim-protection-controller",
		"persistentvolume-protection-controller",
	}
	if p.mode != probe.Resources || p.native {
		names = append(names, "podgroup-protection-controller")
	}
	return names
}

// stockScheduler serves the pods that are not ours: those of jobs with the gang off, or with the native scheduler.
func (p plan) stockScheduler() component {
	binary, first := p.binaries.kubernetes.command("kube-scheduler")
	return component{
		name: "kube-scheduler", version: p.binaries.kubernetes.version, binary: binary,
		args: slices.Concat(first, []string{
			"--kubeconfig=" + p.access.adminKubeconfig, "--leader-elect=false",
			"--authentication-kubeconfig=" + p.access.adminKubeconfig,
			"--authorization-kubeconfig=" + p.access.adminKubeconfig,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.stockScheduler),
			"--tls-cert-file=" + p.access.certFile, "--tls-private-key-file=" + p.access.keyFile,
		}, p.gated()),
		ports:  []int{p.ports.stockScheduler},
		health: p.ports.url("https", p.ports.stockScheduler) + "/readyz",
	}
}

func (p plan) jobset() component {
	return component{
		name:    "jobset",
		version: moduleVersion(p.binaries.JobSet, "sigs.k8s.io/jobset"),
		binary:  p.binaries.JobSet,
		args: []string{
			"--kubeconfig=" + p.access.adminKubeconfig,
			"--config=" + p.state.path("config", "jobset.yaml"),
		},
		ports:  []int{p.ports.jobsetHealth, p.ports.jobsetWebhook},
		health: p.ports.url("http", p.ports.jobsetHealth) + "/readyz",
	}
}

// jobsetConfig lets us bring the certificate (JobSet's own rotation waits for a kubelet to mount it).
func (p plan) jobsetConfig() string {
	return fmt.Sprintf(`apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %q}
internalCertManagement: {enable: false}
clientConnection: {qps: 500, burst: 1000}
`, p.ports.jobsetHealth, p.ports.jobsetWebhook, p.access.certDir)
}

func (p plan) kwok() component {
	args := []string{
		"--kubeconfig=" + p.access.adminKubeconfig, "--config=" + p.state.path("config", "kwok.yaml"),
		fmt.Sprintf("--server-address=127.0.0.1:%d", p.ports.kwok),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
	}
	return component{
		name: "kwok", version: moduleVersion(p.binaries.KWOK, "sigs.k8s.io/kwok"), binary: p.binaries.KWOK, args: args,
		ports:  []int{p.ports.kwok},
		health: p.ports.url("http", p.ports.kwok) + "/healthz",
	}
}

// The names of Lockstep's own components, and of their Deployments.
const (
	controllerName = "lockstep-controller"
	schedulerName  = "lockstep-scheduler"
)

// controller stands for the pods of its Deployment. Later arguments override theirs: the addresses of the API server
// and of this process, and a single replica need not wait for a lease.

func (p plan) controller() component {
	return component{
		name:    controllerName,
		version: moduleVersion(p.binaries.Controller, sourcetree.Module),
		binary:  p.binaries.Controller,
		args: slices.Concat(p.controllerPod.args, []string{
			"--kubeconfig=" + p.access.controllerKubeconfig, "--leader-elect=false",
			fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", p.ports.controllerMetrics),
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", p.ports.controllerHealth),
			"--webhook-host=" + p.host(), fmt.Sprintf("--webhook-port=%d", p.ports.controllerWebhook),
			"--cert-management=external", "--webhook-cert-dir=" + p.access.certDir,
		}, p.reports()),
		ports: []int{
			p.ports.controllerHealth, p.ports.controllerWebhook, p.ports.statusServer, p.ports.controllerMetrics,
		},
		health: p.ports.url("http", p.ports.controllerHealth) + "/readyz",
	}
}

// scheduler stands for the pods of its Deployment, as controller does.
func (p plan) scheduler() component {
	return component{
		name:    schedulerName,
		version: moduleVersion(p.binaries.Scheduler, sourcetree.Module),
		binary:  p.binaries.Scheduler,
		args: slices.Concat(p.schedulerPod.args, []string{
			"--kubeconfig=" + p.access.schedulerKubeconfig,
			"--authentication-kubeconfig=" + p.access.schedulerKubeconfig,
			"--authorization-kubeconfig=" + p.access.schedulerKubeconfig,
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.scheduler),
			"--tls-cert-file=" + p.access.certFile, "--tls-private-key-file=" + p.access.keyFile,
		}),
		// It writes the profile again, with the kubeconfig.
		env:    []string{"TMPDIR=" + p.state.path("tmp")},
		ports:  []int{p.ports.scheduler},
		health: p.ports.url("https", p.ports.scheduler) + "/readyz",

		revivable: true,
	}
}
