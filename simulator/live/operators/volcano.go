package operators

import (
	"context"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// defaultQueue is made by Volcano's installation.
const defaultQueue = `{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 1, reclaimable: true}}`

// volcano is the controller of Volcano's Jobs and PodGroups. It creates pods when Volcano's scheduler has let their
// PodGroup in.
func volcano() Operator {
	return Operator{
		Name: "volcano", Module: volcanoModule(), Main: "./cmd/controller-manager", Replacing: volcanoReplacing(),
		Definitions: []string{"config/crd/volcano/bases/*.yaml", "config/crd/jobflow/bases/*.yaml"},
		start: func(ctx context.Context, at place) error {
			if err := at.ApplyYAML(ctx, []byte(defaultQueue)); err != nil {
				return err
			}
			return at.volcano(ctx, "--scheduler-name=lockstep-scheduler")
		},
	}
}

// volcanoScheduler is Volcano's scheduler, which only lets PodGroups in: it has no action that places pods.
func volcanoScheduler() Operator {
	return Operator{
		Name: "volcano-scheduler", Module: volcanoModule(), Main: "./cmd/scheduler", Replacing: volcanoReplacing(),
		start: func(ctx context.Context, at place) error {
			configuration, err := at.WriteState(
				[]byte("actions: enqueue\ntiers: [{plugins: [{name: gang}, {name: priority}, {name: proportion}]}]\n"),
				"config",
				"volcano-scheduler.yaml",
			)
			if err != nil {
				return err
			}
			return at.volcano(ctx, "--scheduler-conf="+configuration, "--enable-metrics=false")
		},
	}
}

func volcanoModule() Module { return Module{"volcano.sh/volcano", "v1.14.1"} }

// volcanoReplacing are for the folders that a release does not have.
func volcanoReplacing() []Module { return []Module{{"volcano.sh/apis", "v1.14.0"}} }

// volcano runs one of Volcano's programs.
func (p place) volcano(ctx context.Context, flags ...string) error {
	port, err := p.FreePort()
	if err != nil {
		return err
	}
	return p.run(ctx, cluster.Guest{
		Args: append([]string{
			"--kubeconfig=" + p.GuestKubeconfig(),
			"--leader-elect=false",
			"--enable-healthz=true",
			onLoopback("--healthz-address", port),
			"--kube-api-qps=200",
			"--kube-api-burst=400",
		}, flags...),
		Ports: []int{port}, Health: health(port, "/healthz"),
	})
}
