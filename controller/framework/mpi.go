package framework

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The variables that OpenMPI's mpirun reads.
const (
	mpiHostfile = "OMPI_MCA_orte_default_hostfile"
	mpiNames    = "OMPI_MCA_orte_keep_fqdn_hostnames"
	mpiSlots    = "OMPI_MCA_orte_set_default_slots"
	mpiSSH      = "OMPI_MCA_plm_rsh_args"
)

// maxConfigMap is the size in bytes of the data that the API server accepts in a ConfigMap.
const maxConfigMap = 1 << 20

// Where an MPI job's files are. Images and users' commands count on these places.
const (
	mpiKeys       = "mpi-ssh-auth"
	mpiHosts      = "mpi-hostfile"
	mpiHostsDir   = "/etc/mpi"
	mpiHostsFile  = "hostfile"
	mpiKeysDir    = "/root/.ssh"
	mpiPrivateKey = "id_rsa"
)

// MPI is OpenMPI: mpirun in a launcher reaches the nodes by ssh.
type MPI struct{}

// Name is the framework's name.
func (MPI) Name() string { return "mpi" }

// Selects reports whether policy asks for MPI.
func (MPI) Selects(policy trainerv1alpha1.MLPolicySource) bool { return policy.MPI != nil }

// mpiPolicy is the policy with its defaults, which are missing where no API server set them.
type mpiPolicy struct {
	processes    int32
	keysDir      string
	launcherRuns bool
}

func mpiPolicyOf(input Input) mpiPolicy {
	p := mpiPolicy{processes: 1, keysDir: mpiKeysDir}
	if given := input.Policy.MPI; given != nil {
		if given.NumProcPerNode != nil {
			p.processes = *given.NumProcPerNode
		}
		if given.SSHAuthMountPath != nil && *given.SSHAuthMountPath != "" {
			p.keysDir = *given.SSHAuthMountPath
		}
		p.launcherRuns = given.RunLauncherAsNode != nil && *given.RunLauncherAsNode
	}
	return p
}

// Pods returns the number of pods of the nodes' ReplicatedJob: as many as the job wants nodes, less the launcher if
// that is one of them. A job without a number uses the runtime's.
func (MPI) Pods(input Input, role Role) int32 {
	switch {
	case role.Name == trainerv1alpha1.LauncherName:
		return 1
	case role.Name != trainerv1alpha1.NodeName || !input.NodesGiven:
		return role.Pods
	case mpiPolicyOf(input).launcherRuns && input.role(trainerv1alpha1.LauncherName) != nil:
		return max(1, input.Nodes-1)
	}
	return input.Nodes
}

// Validate refuses the variables that mpirun reads, and a launcher that is to be a node where there are not both.
func (MPI) Validate(input Input, spec *field.Path) field.ErrorList {
	var faults field.ErrorList
	var taken []string
	for _, variable := range input.Env {
		if slices.Contains([]string{mpiHostfile, mpiNames, mpiSlots, mpiSSH}, variable.Name) {
			taken = append(taken, variable.Name)
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		faults = append(faults, field.Invalid(spec.Child("trainer", "env"), taken,
			fmt.Sprintf("must not have reserved envs, invalid envs configured: %v", taken)))
	}
	policy := mpiPolicyOf(input)
	if policy.processes == 1 { // which is also the default of a policy
		faults = append(faults, input.refuseUncounted(spec)...)
	}
	if size := len(policy.hosts(input, policy.slots(input))); size > maxConfigMap {
		faults = append(faults, field.Invalid(spec.Child("trainer", "numNodes"), input.Nodes, fmt.Sprintf(
			"the hostfile would have %d bytes, and a ConfigMap holds %d; shorten the job's name or take fewer nodes",
			size, maxConfigMap)))
	}
	both := input.role(trainerv1alpha1.LauncherName) != nil && input.role(trainerv1alpha1.NodeName) != nil
	if input.NodesGiven && input.Nodes >= 2 && mpiPolicyOf(input).launcherRuns && !both {
		faults = append(faults, field.Invalid(
			spec.Child("trainer", "numNodes"),
			input.Nodes,
			"must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher and node",
		))
	}
	return faults
}

// Contribute returns the hosts, the keys with which they reach each other, and mpirun's variables.
func (MPI) Contribute(input Input) Contribution {
	policy := mpiPolicyOf(input)
	slots := policy.slots(input)
	out := Contribution{
		Secrets: []Secret{{Suffix: mpiKeys, Kind: SSHKeys}},
		Files: []Files{{Suffix: mpiHosts, Data: map[string]string{
			mpiHostsFile: policy.hosts(input, slots),
		}}},
		Parts:      []PodParts{keysParts(input, policy.keysDir), hostsParts(input)},
		Companion:  trainerv1alpha1.NodeName,
		BeforeUser: true, // such as the injections below, and the trainer's others
		Injections: []Injection{{
			Role: trainerv1alpha1.LauncherName, Container: trainerv1alpha1.NodeName,
			Env: []corev1.EnvVar{
				text(mpiHostfile, mpiHostsDir+"/"+mpiHostsFile),
				text(mpiNames, "true"),
				number(mpiSlots, int64(slots)),
				text(mpiSSH, "-o ConnectionAttempts=10"),
			},
		}},
	}
	out.CompanionTrains = policy.launcherRuns
	out.Wraps = []Wrap{
		{
			Role:  trainerv1alpha1.LauncherName,
			Words: shellWords("await-names", awaitNamesScript, namesPatience, mpiHostsDir+"/"+mpiHostsFile),
			Missing: "MPI: the launcher does not wait until the hosts' names are in DNS: neither the job nor its runtime has a command, and what the " +
				"image's entrypoint starts is not known; set spec.trainer.command",
		},
	}
	return out
}

// slots returns the number of processes that a host takes.
func (p mpiPolicy) slots(input Input) int32 {
	switch {
	case input.Processes != nil:
		return *input.Processes
	case p.processes == 1 && input.GPUs > 1:
		return int32(min(input.GPUs, math.MaxInt32))
	}
	return p.processes
}

// hosts is the hostfile: a line for each pod that computes, in the order of the runtime's ReplicatedJobs.
func (p mpiPolicy) hosts(input Input, slots int32) string {
	var lines strings.Builder
	for _, role := range input.Roles {
		computes := role.Name == trainerv1alpha1.NodeName || role.Name == trainerv1alpha1.LauncherName && p.launcherRuns
		if !computes {
			continue
		}
		for replica := range role.Replicas {
			for pod := range role.Pods {
				fmt.Fprintf(
					&lines,
					"%s-%s-%d-%d.%s slots=%d\n",
					input.Job,
					role.Name,
					replica,
					pod,
					input.Subdomain,
					slots,
				)
			}
		}
	}
	return lines.String()
}

func keysParts(input Input, dir string) PodParts {
	return PodParts{
		Roles:  []string{trainerv1alpha1.LauncherName, trainerv1alpha1.NodeName},
		Mounts: []corev1.VolumeMount{{Name: mpiKeys, MountPath: dir}},
		Volumes: []corev1.Volume{{Name: mpiKeys, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: input.SecretName(mpiKeys), DefaultMode: new(int32(0o400)),
			Items: []corev1.KeyToPath{
				{Key: corev1.SSHAuthPrivateKey, Path: mpiPrivateKey, Mode: new(int32(0o640))},
				{Key: SSHPublicKey, Path: mpiPrivateKey + ".pub", Mode: new(int32(0o644))},
				{Key: SSHPublicKey, Path: "authorized_keys", Mode: new(int32(0o644))},
			},
		}}}},
	}
}

func hostsParts(input Input) PodParts {
	return PodParts{
		Roles:  []string{trainerv1alpha1.LauncherName},
		Mounts: []corev1.VolumeMount{{Name: mpiHosts, MountPath: mpiHostsDir}},
		Volumes: []corev1.Volume{{
			Name: mpiHosts,
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: input.Job + "-" + mpiHosts},
				Items: []corev1.KeyToPath{
					{Key: mpiHostsFile, Path: mpiHostsFile, Mode: new(int32(0o444))},
				},
			}},
		}},
	}
}
