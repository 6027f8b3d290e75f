package operators

import (
	"context"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// kubeRay is the operator of Ray's clusters. Its pods of scheduler-plugins name a scheduler that cannot be chosen: scheduler-plugins-scheduler.
func kubeRay() Operator {
	return Operator{
		Name:        "kuberay",
		Module:      Module{"github.com/ray-project/kuberay/ray-operator", "v1.6.0"},
		Main:        ".",
		Groups:      true,
		Definitions: []string{"config/crd/bases/*.yaml"},
		start: func(ctx context.Context, at place) error {
			port, err := at.FreePort()
			if err != nil {
				return err
			}
			return at.run(ctx, cluster.Guest{
				Args: []string{
					"--kubeconfig=" + at.GuestKubeconfig(),
					"--enable-leader-election=false",
					"--batch-scheduler=scheduler-plugins",
					"--metrics-addr=0",
					onLoopback("--health-probe-bind-address", port),
					"--qps=200",
					"--burst=400",
				},
				Ports: []int{port}, Health: health(port, "/healthz"),
			})
		},
	}
}
