package cluster

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// ports are the loopback ports of one run.
type ports struct {
	etcd, etcdPeer, apiserver, controllerManager, stockScheduler, kwok, scheduler  int
	jobsetHealth, jobsetWebhook, controllerHealth, controllerWebhook, statusServer int
	controllerMetrics, kueueHealth, kueueWebhook, trainerHealth, trainerWebhook    int
	// kubelet is that of every fake node.
	kubelet int

	// held reserves each port until its component starts: until then any outgoing connection might take it.
	held map[int]net.Listener
}

func (ports) url(scheme string, port int) string { return scheme + "://" + loopback(port) }

// loopback is the address of a port.
func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// choosePorts finds free ports for every component and holds them until they are released. A wanted API server port
// that is taken is bad input; 0 wants none.
func choosePorts(apiserver int) (ports, error) {
	chosen := ports{apiserver: apiserver, held: map[int]net.Listener{}}
	if err := hold(&chosen); err != nil {
		chosen.releaseAll()
		return ports{}, err
	}
	return chosen, nil
}

// hold listens on every port, and writes down the chosen one where none is wanted.
func hold(p *ports) error {
	for _, port := range []*int{
		&p.apiserver, &p.etcd, &p.etcdPeer, &p.controllerManager, &p.stockScheduler, &p.jobsetHealth,
		&p.jobsetWebhook, &p.kwok, &p.controllerHealth, &p.controllerWebhook, &p.statusServer,
		&p.controllerMetrics, &p.scheduler, &p.kueueHealth, &p.kueueWebhook,
		&p.trainerHealth, &p.trainerWebhook, &p.kubelet,
	} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
		if err != nil {
			if *port == 0 {
				return fmt.Errorf("finding a free port: %w", err)
			}
			return badinput.At(fmt.Sprintf("--port %d", *port), 0, "the port cannot be used: "+err.Error(),
				"choose another port, or leave --port out for a free one")
		}
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return fmt.Errorf("finding a free port: %v is no TCP address", listener.Addr())
		}
		*port = address.Port
		p.held[*port] = listener
	}
	return nil
}

// release frees ports for the components that they were chosen for.
func (p ports) release(numbers ...int) {
	for _, port := range numbers {
		if listener, held := p.held[port]; held {
			_ = listener.Close() // no client has connected
			delete(p.held, port)
		}
	}
}

// take returns the listener of a port that this process serves itself.
func (p ports) take(port int) net.Listener {
	listener := p.held[port]
	delete(p.held, port)
	return listener
}

// releaseAll frees every port that no component has taken.
func (p ports) releaseAll() { p.release(slices.Collect(maps.Keys(p.held))...) }
