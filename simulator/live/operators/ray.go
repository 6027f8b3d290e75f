package operators

import (
	"context"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// kubeRay is the operator of Ray's clusters. Its pods of scheduler-plugins name a scheduler that cannot be chosen:
// scheduler-plugins-scheduler.
func kubeRay() Operator {
	o := kubeRayAlone()
	o.Name, o.Groups = "kuberay", true
	o.start = func(ctx context.Context, at place) error { return at.ray(ctx, "--batch-scheduler=scheduler-plugins") }
	return o
}

// kubeRayAlone has no batch scheduler: its pods are as their templates say.
func kubeRayAlone() Operator {
	return Operator{
		Name:        "kuberay-alone",
		Module:      Module{"github.com/ray-project/kuberay/ray-operator", "v1.6.0"},
		Main:        ".",
		Groups:      true,
		Definitions: []string{"config/crd/bases/*.yaml"},
		start:       func(ctx context.Context, at place) error { return at.ray(ctx) },
	}
}

// ray runs KubeRay.
func (p place) ray(ctx context.Context, flags ...string) error {
	port, err := p.FreePort()
	if err != nil {
		return err
	}
	return p.run(ctx, cluster.Guest{
		Args: append([]string{
			"--kubeconfig=" + p.GuestKubeconfig(), "--enable-leader-election=false", "--metrics-addr=0",
			onLoopback("--health-probe-bind-address", port), "--qps=200", "--burst=400",
		}, flags...),
		Ports: []int{port}, Health: health(port, "/healthz"),
	})
}
