package realnode

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// The addresses inside. A node is a further address of the bridge, and has a part of the network for its pods.
const (
	// Bridge is the bridge that connects pods, nodes and the control plane.
	Bridge = "lockstep0"
	// Address is where pods and nodes reach the control plane's processes.
	Address = "10.99.0.1"
	// ServiceAddress is that of Service kubernetes, the first of the range of Services. Nothing translates addresses in here: it is an address of loopback, at
	// which the API server answers, too, if its port is ServicePort.
	ServiceAddress = "10.0.0.1"
	// ServicePort is the port of Service kubernetes.
	ServicePort = 443

	network = "10.99.0.0/16"
)

// bridgeHardware is the bridge's own hardware address. A bridge without one takes that of a port, and another one's when pods come and go: until
// others notice, their packets go nowhere.
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
	if err := address(loopback, ServiceAddress+"/32"); err != nil {
		return err
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
	return address(bridge, fmt.Sprintf("%s/%d", Address, ones))
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
