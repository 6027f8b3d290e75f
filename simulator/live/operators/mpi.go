package operators

import (
	"context"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// mpi is Kubeflow's MPI operator, whose gang scheduler is named by a flag.
func mpi() Operator {
	return Operator{
		Name:        "mpi-operator",
		Module:      Module{"github.com/kubeflow/mpi-operator", "v0.8.0"},
		Main:        "./cmd/mpi-operator",
		Groups:      true,
		Definitions: []string{"manifests/base/kubeflow.org_mpijobs.yaml"},
		start: func(ctx context.Context, at place) error {
			return at.run(ctx, cluster.Guest{
				Args: []string{
					"-kubeConfig=" + at.GuestKubeconfig(),
					"-gang-scheduling=lockstep-scheduler",
					"-lock-namespace=" + cluster.GuestNamespace,
					"-kube-api-qps=200",
					"-kube-api-burst=400",
				},
				// Its port is fixed.
				Health: health(8080, "/healthz"),
			})
		},
	}
}
