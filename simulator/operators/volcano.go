package operators

import (
	"context"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// volcano is the controller of Volcano's Jobs and PodGroups, without Volcano's scheduler.
func volcano() Operator {
	return Operator{
		Name: "volcano", Module: Module{"volcano.sh/volcano", "v1.14.1"}, Main: "./cmd/controller-manager",
		Replacing:   []Module{{"volcano.sh/apis", "v1.14.0"}},
		Definitions: []string{"config/crd/volcano/bases/*.yaml", "config/crd/jobflow/bases/*.yaml"},
		start: func(ctx context.Context, at place) error {
			port, err := at.FreePort()
			if err != nil {
				return err
			}
			return at.run(ctx, cluster.Guest{
				Args: []string{
					"--kubeconfig=" + at.GuestKubeconfig(),
					"--leader-elect=false",
					"--enable-healthz=true",
					onLoopback("--healthz-address", port),
					"--scheduler-name=lockstep-scheduler",
					"--kube-api-qps=200",
					"--kube-api-burst=400",
				},
				Ports: []int{port}, Health: health(port, "/healthz"),
			})
		},
	}
}
