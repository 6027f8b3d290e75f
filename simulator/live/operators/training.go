package operators

import (
	"context"
	"fmt"
	"os"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// training is Kubeflow's training-operator: PyTorchJobs and the like, of the time before TrainJobs.
func training() Operator {
	// It looks for its certificate there, and nowhere else.
	const parent, folder = "/tmp/k8s-webhook-server", "/tmp/k8s-webhook-server/serving-certs"
	const validator = "validator.training-operator.kubeflow.org"
	return Operator{
		Name:        "training-operator",
		Module:      Module{"github.com/kubeflow/training-operator", "v1.9.4"},
		Main:        "./cmd/training-operator.v1",
		Groups:      true,
		Definitions: []string{"manifests/base/crds/kubeflow.org_pytorchjobs.yaml"},
		Webhooks:    []string{validator},
		Folder:      parent,
		start: func(ctx context.Context, at place) error {
			probes, port, err := at.listen()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return fmt.Errorf("creating the folder of its certificate: %w", err)
			}
			serving := cluster.Serving{
				Namespace: cluster.GuestNamespace,
				Secret:    "training-operator-webhook-cert",
				Service:   "training-operator",
				Authority: "training-operator-ca",
			}
			if err := at.ServeAs(ctx, serving, folder); err != nil {
				return err
			}
			configurations, err := at.webhooks("manifests/base/webhook/manifests.yaml")
			if err != nil {
				return err
			}
			for _, configuration := range configurations {
				configuration.SetName(validator)
			}
			if err := at.ApplyGuestWebhooks(ctx, port, configurations...); err != nil {
				return err
			}
			return at.run(ctx, cluster.Guest{
				Args: []string{
					"--kubeconfig=" + at.GuestKubeconfig(),
					"--enable-scheme=pytorchjob",
					"--gang-scheduler-name=lockstep-scheduler",
					"--metrics-bind-address=0",
					onLoopback("--health-probe-bind-address", probes),
					fmt.Sprintf("--webhook-server-port=%d", port),
					"--kube-api-qps=200",
					"--kube-api-burst=400",
				},
				Env:   []string{"MY_POD_NAMESPACE=" + cluster.GuestNamespace, "TMPDIR=/tmp"},
				Ports: []int{probes, port}, Health: health(probes, "/readyz"),
			})
		},
	}
}
