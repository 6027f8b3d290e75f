package cluster

import (
	"fmt"
	"net"
	"strconv"

	"github.com/lockstep-project/lockstep/simulator/badinput"
)

// ports are the loopback ports of one run.
type ports struct {
	etcd, etcdPeer, apiserver, controllerManager, stockScheduler, kwok, scheduler  int
	jobsetHealth, jobsetWebhook, controllerHealth, controllerWebhook, statusServer int
	controllerMetrics                                                              int
}

func (ports) url(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}

// choosePorts finds free ports for every component. A wanted API server port that is taken is bad input; 0 wants none.
func choosePorts(apiserver int) (ports, error) {
	var chosen ports
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close() // the port is free again for the component that it was chosen for
		}
	}()
	chosen.apiserver = apiserver
	for _, port := range []*int{
		&chosen.apiserver, &chosen.etcd, &chosen.etcdPeer, &chosen.controllerManager,
		&chosen.stockScheduler, &chosen.jobsetHealth,
		&chosen.jobsetWebhook, &chosen.kwok, &chosen.controllerHealth, &chosen.controllerWebhook, &chosen.statusServer,
		&chosen.controllerMetrics, &chosen.scheduler,
	} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
		if err != nil {
			if *port == 0 {
				return ports{}, fmt.Errorf("finding a free port: %w", err)
			}
			return ports{}, badinput.At(fmt.Sprintf("--port %d", *port), 0, "the port cannot be used: "+err.Error(),
				"choose another port, or leave --port out for a free one")
		}
		held = append(held, listener)
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return ports{}, fmt.Errorf("finding a free port: %v is no TCP address", listener.Addr())
		}
		*port = address.Port
	}
	return chosen, nil
}
