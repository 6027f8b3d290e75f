package framework

import (
	_ "embed" // the script
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The variables by which libtpu and JAX know the hosts of a slice and the slices of a job. JAX 0.10 computes a
// process's id from them (jax/_src/clusters/cloud_tpu_cluster.py): worker + slice x workers of a slice, with the
// coordinator on worker 0 of slice 0. GKE's webhook sets the same variables for Jobs; it leaves those that are there.
const (
	tpuWorker      = "TPU_WORKER_ID"
	tpuWorkers     = "TPU_WORKER_HOSTNAMES"
	megascaleHost  = "MEGASCALE_COORDINATOR_ADDRESS"
	megascaleCount = "MEGASCALE_NUM_SLICES"
	megascaleSlice = "MEGASCALE_SLICE_ID"
	// jaxSlice is the slice for other devices than TPUs, which have no variables of their own.
	jaxSlice = "JAX_PARTITION_INDEX"
)

//go:embed scripts/slice-rank.sh
var sliceRankScript string

// Sliced is a Framework whose training may be several Jobs, one for each slice.
type Sliced interface {
	Framework
	// Sliced does nothing: it marks the Framework.
	Sliced()
}

// Sliced marks JAX as a Framework that trains over several slices.
func (JAX) Sliced() {}

// joinSlices adds which slice a pod is in. Its rank among all slices is a sum of products, which the container's shell
// computes.
func (JAX) joinSlices(input Input, out *Contribution) {
	out.Env = []corev1.EnvVar{out.Env[0], out.Env[2], sliceIndex(jaxSlice)}
	if input.TPU {
		out.Env = append(out.Env,
			rank(tpuWorker),
			sliceIndex(megascaleSlice),
			text(tpuWorkers, input.sliceHosts()),
			number(megascaleCount, int64(input.Slices)),
			text(megascaleHost, input.host("0", 0)),
		)
	}
	out.Wraps = append(out.Wraps, Wrap{
		Words: shellWords("slice-rank", sliceRankScript, strconv.Itoa(int(input.Nodes/input.Slices))),
		Missing: "JAX: JAX_PROCESS_ID is not set for the ranks of several slices: neither the job nor its runtime has a command to compute it " +
			"before; set spec.trainer.command, or let jax.distributed.initialize detect the slices without arguments",
	})
}

// sliceHosts returns the DNS names of the hosts of a pod's own slice, separated by commas. The kubelet fills in the
// slice.
func (w Input) sliceHosts() string {
	hosts := make([]string, w.Nodes/w.Slices)
	for i := range hosts {
		hosts[i] = w.host("$("+megascaleSlice+")", i)
	}
	return strings.Join(hosts, ",")
}

// host is the DNS name of a training pod.
func (w Input) host(slice string, index int) string {
	name := trainerv1alpha1.NodeName
	if i := slices.IndexFunc(w.Roles, func(r Role) bool { return r.Trains }); i >= 0 {
		name = w.Roles[i].Name
	}
	return w.Job + "-" + name + "-" + slice + "-" + strconv.Itoa(index) + "." + w.Subdomain
}

// sliceIndex returns a variable with the number of the pod's Job among those of its ReplicatedJob.
func sliceIndex(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: "metadata.labels['" + jobsetv1alpha2.JobIndexKey + "']",
	}}}
}
