package realnode

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

// The addresses inside. A node is a further address of the bridge, and has a part of the network for its pods.
const (
	// Bridge is the bridge that connects pods, nodes and the control plane.
	Bridge = "lockstep0"
	// Address is the address at which pods and nodes reach the control plane's processes.
	Address = "10.99.0.1"
	// DNSAddress is that of the Service by which CoreDNS answers pods: the tenth of the range of Services, as in most
	// clusters.
	DNSAddress = "10.0.0.10"
	// ClusterDomain ends the names of Services and pods.
	ClusterDomain = "cluster.local"

	network = "10.99.0.0/16"
	// serviceRange is that of the addresses of Services.
	serviceRange = "10.0.0.0/24"
)

// bridgeHardware is the bridge's own hardware address. A bridge without one takes that of a port, and another one's
// when pods start and end: until its neighbors notice, their packets are lost.
func bridgeHardware() net.HardwareAddr { return net.HardwareAddr{0x02, 0x4c, 0x53, 0, 0, 1} }

// nodeAddress is the address of the n-th node, from 1 on.
func nodeAddress(n int) string { return fmt.Sprintf("10.99.0.%d", 1+n) }

// podRange are the first and the last address of pods on the n-th node.
func podRange(n int) (first, last string) {
	return fmt.Sprintf("10.99.%d.2", n), fmt.Sprintf("10.99.%d.254", n)
}

// connect sets up loopback and the bridge in a new network namespace.
func connect() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding loopback: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("setting loopback up: %w", err)
	}
	// Pods reach Services through the bridge's own address, and kube-proxy sends them on to other pods.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forwarding packets between pods: %w", err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.HardwareAddr = Bridge, bridgeHardware()
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("making the bridge: %w", err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("setting the bridge up: %w", err)
	}
	_, whole, err := net.ParseCIDR(network)
	if err != nil {
		return fmt.Errorf("parsing the network: %w", err)
	}
	ones, _ := whole.Mask.Size()
	if err := address(bridge, fmt.Sprintf("%s/%d", Address, ones)); err != nil {
		return err
	}
	// Without a way to their addresses, kube-proxy never sees packets that processes of this machine send to Services.
	_, services, err := net.ParseCIDR(serviceRange)
	if err == nil {
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Attrs().Index, Dst: services})
	}
	if err != nil {
		return fmt.Errorf("adding a route to Services: %w", err)
	}
	return nil
}

// address gives a link an address.
func address(link netlink.Link, text string) error {
	parsed, err := netlink.ParseAddr(text)
	if err == nil {
		err = netlink.AddrAdd(link, parsed)
	}
	if err != nil {
		return fmt.Errorf("giving %s the address %s: %w", link.Attrs().Name, text, err)
	}
	return nil
}

// addNodeAddress gives the bridge the address of the n-th node.
func addNodeAddress(n int) error {
	bridge, err := netlink.LinkByName(Bridge)
	if err != nil {
		return fmt.Errorf("finding the bridge: %w", err)
	}
	return address(bridge, nodeAddress(n)+"/32")
}
