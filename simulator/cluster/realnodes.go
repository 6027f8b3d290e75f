package cluster

import "net"

// RealNodes is what a control plane has to know of nodes with kubelets.
type RealNodes struct {
	// Address is where pods and kubelets reach the API server, beside Service kubernetes, whose address must lead to its port.
	Address, ServiceAddress string
}

// listening is where the API server listens, and what it calls in turn: kubelets by their addresses, and the pods behind the Services
// of webhooks, because nothing translates the addresses of Services.
func (p plan) listening() []string {
	if p.real == nil {
		return []string{
			"--bind-address=127.0.0.1",
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
	return []net.IP{net.ParseIP(p.real.Address), net.ParseIP(p.real.ServiceAddress)}
}

// controllers are all of kube-controller-manager that need no cloud: pods get their addresses from the nodes.
func (*RealNodes) controllers() []string {
	return []string{"*", "-node-ipam-controller"}
}
