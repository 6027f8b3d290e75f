package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// startServices starts kube-proxy and CoreDNS, by which pods and the API server reach Services, with their files in a
// folder. It needs the first node, and returns when CoreDNS knows Service kubernetes.
func startServices(ctx context.Context, in Cluster, dir string) error {
	dir = filepath.Join(dir, "services")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of kube-proxy and CoreDNS: %w", err)
	}
	proxy, dns := filepath.Join(dir, "kube-proxy.yaml"), filepath.Join(dir, "Corefile")
	for file, content := range map[string]string{proxy: kubeProxy(in.Kubeconfig), dns: corefile(in.Kubeconfig)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of kube-proxy and CoreDNS: %w", err)
		}
	}
	services, err := startSupervisor(nodePlan{Dir: dir, Programs: []program{
		{"kube-proxy", []string{filepath.Join(in.Programs, "kube-proxy"), "--config=" + proxy, "--v=2"}, ""},
		{"coredns", []string{filepath.Join(in.Programs, "coredns"), "-conf", dns}, ""},
	}})
	if err != nil {
		return err
	}
	if err := createDNS(ctx, in.Client); err != nil {
		return err
	}
	return waitForService(ctx, services, dir)
}

// createDNS creates the Service of CoreDNS, which is no pod.
func createDNS(ctx context.Context, client kubernetes.Interface) error {
	const name = "kube-dns"
	protocols := []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: DNSAddress},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem,
			Name:      name,
			Labels:    map[string]string{discoveryv1.LabelServiceName: name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{Address}}},
	}
	for _, protocol := range protocols {
		port := strings.ToLower("dns-" + string(protocol))
		service.Spec.Ports = append(
			service.Spec.Ports,
			corev1.ServicePort{Name: port, Protocol: protocol, Port: dnsPort},
		)
		slice.Ports = append(
			slice.Ports,
			discoveryv1.EndpointPort{Name: &port, Protocol: &protocol, Port: new(int32(dnsPort))},
		)
	}
	_, err := client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
	if err == nil {
		_, err = client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("creating the Service of CoreDNS: %w", err)
	}
	return nil
}

const dnsPort = 53

// kubeProxy is the configuration of kube-proxy. Pods of all nodes are on one bridge, so answers would not pass
// kube-proxy again unless the questions seem to be its own.
func kubeProxy(kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
nftables: {masqueradeAll: true}
clientConnection: {kubeconfig: %q}
hostnameOverride: %s
detectLocalMode: ClusterCIDR
clusterCIDR: %s
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: ""
metricsBindAddress: ""
`, kubeconfig, nodeName(1), network)
}

// corefile is the configuration of CoreDNS. Answers are remembered for half a minute, also that there is no such name,
// as most clusters do: programs that ask for a name too early fail here as they fail there.
func corefile(kubeconfig string) string {
	return fmt.Sprintf(`.:53 {
    bind %s
    errors
    kubernetes %s in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
        ttl 30
    }
    cache 30
    loadbalance
}
`, Address, ClusterDomain, kubeconfig)
}

// waitForService waits until Service kubernetes is known by its name, and its address leads to the API server.
func waitForService(ctx context.Context, services *supervisor, dir string) error {
	dialer := net.Dialer{Timeout: readyEvery}
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", net.JoinHostPort(DNSAddress, "53"))
	}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		found, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+ClusterDomain+".")
		if err == nil {
			var connection net.Conn
			if connection, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(found[0], "443")); err == nil {
				_ = connection.Close() // it was only to see that it can be opened
			}
		}
		last = err
		return err == nil, services.check()
	})
	if err != nil {
		return fmt.Errorf("waiting for Service kubernetes (logs are in %s): %w", dir, errors.Join(err, last))
	}
	return nil
}
