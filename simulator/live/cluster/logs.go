package cluster

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/kubelet"
)

// serveLogs answers for the kubelets of the fake nodes until ctx ends.
func (c *Cluster) serveLogs(ctx context.Context) {
	server := &http.Server{
		Handler:           kubelet.New(c.Client, clock.RealClock{}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	listener := c.plan.ports.take(c.plan.ports.kubelet)
	go func() {
		// It ends with ctx.
		_ = server.ServeTLS(listener, c.plan.access.certFile, c.plan.access.keyFile)
	}()
}
