package operators

import (
	"context"
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// SparkWith is Kubeflow's Spark operator, without its webhooks, and with a program in place of Spark's spark-submit:
// the path of an executable of that name in a folder bin.
func SparkWith(submit string) Operator {
	return Operator{
		Name:        "spark-operator",
		Module:      Module{"github.com/kubeflow/spark-operator/v2", "v2.5.2"},
		Main:        "./cmd/operator",
		Groups:      true,
		Definitions: []string{"config/crd/bases/*.yaml"},
		Folder:      "/tmp/spark", // for templates of pods
		start: func(ctx context.Context, at place) error {
			port, err := at.FreePort()
			if err != nil {
				return err
			}
			return at.run(ctx, cluster.Guest{
				Args: []string{
					"controller",
					"start",
					"--kubeconfig=" + at.GuestKubeconfig(),
					"--enable-batch-scheduler=true",
					"--kube-scheduler-names=lockstep-scheduler",
					"--enable-ui-service=false",
					onLoopback("--health-probe-bind-address", port),
					"--kube-api-qps=200",
					"--kube-api-burst=400",
				},
				// Spark's master is the API server of the pod that the operator would be.
				Env: []string{
					"SPARK_HOME=" + filepath.Dir(filepath.Dir(submit)), "KUBECONFIG=" + at.GuestKubeconfig(),
					"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=443",
				},
				Ports: []int{port}, Health: health(port, "/readyz"),
			})
		},
	}
}
