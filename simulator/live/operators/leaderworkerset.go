package operators

import (
	"context"
	"fmt"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// leaderWorkerSet is the controller of LeaderWorkerSets.
func leaderWorkerSet() Operator {
	return Operator{
		Name: "leaderworkerset", Module: Module{"sigs.k8s.io/lws", "v0.9.0"}, Main: "./cmd",
		Definitions: []string{"config/crd/bases/*.yaml"},
		Webhooks:    []string{"lws-mutating-webhook-configuration", "lws-validating-webhook-configuration"},
		start: func(ctx context.Context, at place) error {
			probes, port, err := at.listen()
			if err != nil {
				return err
			}
			configuration, err := at.WriteState(fmt.Appendf(nil, `apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %q}
internalCertManagement: {enable: false}
`, probes, port, at.CertDir()), "config", "leaderworkerset.yaml")
			if err != nil {
				return err
			}
			err = at.run(ctx, cluster.Guest{
				Args:  []string{"--kubeconfig=" + at.GuestKubeconfig(), "--config=" + configuration},
				Ports: []int{probes, port}, Health: health(probes, "/readyz"),
			})
			if err != nil {
				return err
			}
			configurations, err := at.webhooks("config/webhook/manifests.yaml")
			if err != nil {
				return err
			}
			for i, configuration := range configurations {
				if configurations[i], err = cluster.AsDeployed(
					configuration,
					"lws",
					"leaderworkerset.sigs.k8s.io/name",
				); err != nil {
					return fmt.Errorf("reading webhooks: %w", err)
				}
			}
			return at.ApplyGuestWebhooks(ctx, port, configurations...)
		},
	}
}
