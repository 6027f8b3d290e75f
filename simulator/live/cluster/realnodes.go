package cluster

import (
	"context"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// RealNodes is the control plane's configuration for nodes with kubelets.
type RealNodes struct {
	// Address is this machine's IP address in the network of pods and kubelets.
	Address string
}

// statusService is the Service that the chart makes for the controller, and the port of it at which trainers report.
const (
	statusService = "lockstep-controller-webhook"
	statusPort    = "status-server"
	statusNumber  = 10443
)

// listening returns the flags for the API server's addresses, and for how it reaches kubelets and the pods behind
// Services.
func (p plan) listening() []string {
	if p.real == nil {
		return []string{
			"--bind-address=127.0.0.1", "--endpoint-reconciler-type=none",
			"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + p.access.certFile,
		}
	}
	return []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + p.real.Address,
		"--kubelet-preferred-address-types=InternalIP", "--enable-aggregator-routing=true",
	}
}

// addresses are those in the API server's certificate beside loopback.
func (p plan) addresses() []net.IP {
	if p.real == nil {
		return nil
	}
	return []net.IP{net.ParseIP(p.real.Address), net.ParseIP(serviceAddress)}
}

// serviceAddress is that of Service kubernetes: the first of the range of Services.
const serviceAddress = "10.0.0.1"

// names are those in the certificate beside localhost: the names by which pods call the API server and the status
// server.
func (p plan) names() []string {
	if p.real == nil {
		return nil
	}
	return []string{"kubernetes.default.svc", "kubernetes.default", p.statusHost()}
}

// statusHost is the name by which pods reach the status server, as in production.
func (plan) statusHost() string { return statusService + "." + render.Default().Namespace + ".svc" }

// host returns the address on which the controller listens.
func (p plan) host() string {
	if p.real == nil {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// reports returns the flags for the address at which the controller listens for reports, and the URL that it gives to
// trainers.
func (p plan) reports() []string {
	url := p.ports.url("https", p.ports.statusServer)
	if p.real != nil {
		url = fmt.Sprintf("https://%s:%d", p.statusHost(), statusNumber)
	}
	return []string{fmt.Sprintf("--status-server-port=%d", p.ports.statusServer), "--status-server-url=" + url}
}

// offerStatusServer has the controller's Service lead to its process: it has no pods.
func (c *Cluster) offerStatusServer(ctx context.Context) error {
	if c.plan.real == nil || c.plan.bare {
		return nil
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: render.Default().Namespace, Name: statusService + "-here",
			Labels: map[string]string{
				discoveryv1.LabelServiceName: statusService, discoveryv1.LabelManagedBy: "simulator.lockstep.dev",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{c.plan.real.Address}}},
		Ports: []discoveryv1.EndpointPort{{
			Name: new(statusPort), Port: new(int32(c.plan.ports.statusServer)), Protocol: new(corev1.ProtocolTCP),
		}},
	}
	_, err := c.Client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("having Service %s lead to the status server: %w", statusService, err)
	}
	return nil
}

// controllers are all of kube-controller-manager that need no cloud: pods get their addresses from the nodes.
func (*RealNodes) controllers() []string {
	return []string{"*", "-node-ipam-controller"}
}
