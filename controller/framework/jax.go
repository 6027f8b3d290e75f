package framework

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// JAX is jax.distributed: one process on each node.
type JAX struct{}

// Name is the framework's name.
func (JAX) Name() string { return "jax" }

// Selects reports whether policy asks for JAX.
func (JAX) Selects(policy trainerv1alpha1.MLPolicySource) bool { return policy.JAX != nil }

// Validate has nothing to check: JAX reserves no names, so a user may override its contribution.
func (JAX) Validate(Input, *field.Path) field.ErrorList { return nil }

// Contribute returns the variables from which jax.distributed.initialize takes its arguments.
func (j JAX) Contribute(input Input) Contribution {
	out := Contribution{
		BeforeUser: true,
		Env: []corev1.EnvVar{
			number("JAX_NUM_PROCESSES", int64(input.Nodes)),
			rank("JAX_PROCESS_ID"),
			text("JAX_COORDINATOR_ADDRESS", net.JoinHostPort(input.Leader(), strconv.Itoa(int(port)))),
		},
		Ports: []int32{port},
	}
	if input.Slices > 1 {
		j.joinSlices(input, &out)
	}
	if input.WithoutToken {
		out.Warnings = []string{withoutToken}
	}
	return out
}

// withoutToken warns of JAX's detection of clusters, which also looks when initialize has all its arguments but
// local_device_ids: in a pod of Kubernetes it loads the ServiceAccount's token as soon as Python's package kubernetes
// is there, and fails without one.
const withoutToken = "JAX: the pods have automountServiceAccountToken: false; if the image has the Python package kubernetes, " +
	`jax.distributed.initialize fails even with explicit arguments; add cluster_detection_method="deactivate" to them`
