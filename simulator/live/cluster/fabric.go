package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// The bounds of the time for which a node stays labeled for its domain after its last pod with a channel is deleted.
const (
	quickest = 5 * time.Second
	slowest  = 30 * time.Second
)

// connectNodes plays NVIDIA's DRA driver until ctx ends, if there is anything to connect by NVLink. Its errors are in
// its log.
func (c *Cluster) connectNodes(ctx context.Context, settings nvlink.Settings) error {
	if !c.plan.cliques {
		return nil
	}
	settings.Quickest, settings.Slowest = cmp.Or(settings.Quickest, quickest), cmp.Or(settings.Slowest, slowest)
	path := c.plan.state.path("logs", "nvlink.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of NVIDIA's driver: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = log.Close() })
	driver, err := nvlink.New(c.plan.access.driver, clock.RealClock{}, settings)
	if err != nil {
		return fmt.Errorf("connecting nodes by NVLink: %w", err)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))
	if err := driver.Start(klog.NewContext(ctx, logger)); err != nil {
		return fmt.Errorf("connecting nodes by NVLink: %w", err)
	}
	return nil
}
