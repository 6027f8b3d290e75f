package migrate

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// mpiJob is an MPIJob of either operator, as far as it is read.
type mpiJob struct {
	oldObject `json:",inline"`
	Spec      struct {
		RunPolicy              runPolicy              `json:"runPolicy"`
		Replicas               map[string]replicaSpec `json:"mpiReplicaSpecs"`
		SlotsPerWorker         *int32                 `json:"slotsPerWorker"`
		SSHAuthMountPath       string                 `json:"sshAuthMountPath"`
		MPIImplementation      string                 `json:"mpiImplementation"`
		RunLauncherAsWorker    *bool                  `json:"runLauncherAsWorker"`
		LauncherCreationPolicy string                 `json:"launcherCreationPolicy"`
		// CleanPodPolicy and MainContainer are v1's.
		CleanPodPolicy *string `json:"cleanPodPolicy"`
		MainContainer  string  `json:"mainContainer"`
	} `json:"spec"`
}

// mpiEnvironment returns the environment of MPIJob's pods.
func mpiEnvironment() environment {
	return environment{
		replaced: map[string]string{
			"K_MPI_JOB_ROLE":         "tell the launcher by its command",
			"OMPI_MCA_plm_rsh_agent": "mpirun reaches the nodes by ssh",
		},
		reserved: []string{
			"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames",
			"OMPI_MCA_orte_set_default_slots", "OMPI_MCA_plm_rsh_args",
		},
	}
}

// mpiJob makes a runtime and a TrainJob of an MPIJob: the launcher, which trains, and the nodes that it commands.
func (p *page) mpiJob(version string) ([]map[string]any, error) {
	var old mpiJob
	if err := p.fill(p.copyWithoutServer(), nil, &old); err != nil {
		return nil, err
	}
	if err := p.onlyOpenMPI(at("spec", "mpiImplementation"), old.Spec.MPIImplementation); err != nil {
		return nil, err
	}
	s, err := p.successor(old.Metadata, "mpi")
	if err != nil {
		return nil, err
	}
	for kind, spec := range old.Spec.Replicas {
		if strings.EqualFold(kind, "Worker") && spec.Replicas == nil {
			spec.Replicas = new(int32(0)) // the operators' default
			old.Spec.Replicas[kind] = spec
		}
	}
	replicas, err := p.replicas(at("spec", "mpiReplicaSpecs"), old.Spec.Replicas, "Launcher", "Worker")
	if err != nil {
		return nil, err
	}
	if replicas[0].kind != "Launcher" || replicas[0].count != 1 {
		return nil, p.bad(
			at("spec", "mpiReplicaSpecs"),
			"the job does not have one Launcher",
			"write one, with replicas 1",
		)
	}
	p.mpiRestarts(replicas, version)
	for _, r := range replicas {
		if err := p.mpiReplica(s, r, old, version); err != nil {
			return nil, err
		}
	}
	p.mpiPolicyOf(s, replicas, old)
	if policy := old.Spec.CleanPodPolicy; policy != nil {
		p.cleanPods(at("spec", "cleanPodPolicy"), *policy)
	}
	if err := p.live(s, old.Spec.RunPolicy); err != nil {
		return nil, err
	}
	return p.finish(s)
}

// mpiRestarts sets restart policies: by default v1's pods were never restarted, nor were v2beta1's workers.
func (p *page) mpiRestarts(replicas []replica, version string) {
	launcher := corev1.RestartPolicyOnFailure
	if version == "v1" {
		launcher = corev1.RestartPolicyNever
	}
	p.restarting(replicas[:1], launcher)
	p.restarting(replicas[1:], corev1.RestartPolicyNever)
}

// mpiPolicyOf sets the numbers of nodes and processes, and the place of the keys. Nodes without a ReplicatedJob of
// their own are the launcher.
func (p *page) mpiPolicyOf(s *successor, replicas []replica, old mpiJob) {
	asNode := ptr.Deref(old.Spec.RunLauncherAsWorker, false)
	if old.Spec.RunLauncherAsWorker != nil {
		p.note(at("spec", "runLauncherAsWorker"), "it is the runtime's mlPolicy.mpi.runLauncherAsNode now")
	}
	nodes := int32(0)
	if len(replicas) > 1 {
		nodes = replicas[1].count
	} else if !asNode {
		asNode = true
		p.note(replicas[0].where, "there are no workers, so the launcher is the one node now (runLauncherAsNode)")
	}
	if asNode {
		nodes++
	}
	if old.Spec.SlotsPerWorker != nil {
		p.note(at("spec", "slotsPerWorker"), "it is spec.trainer.numProcPerNode of the TrainJob now")
	}
	s.job.Spec.Trainer.NumNodes = new(nodes)
	s.job.Spec.Trainer.NumProcPerNode = new(ptr.Deref(old.Spec.SlotsPerWorker, 1))
	s.runtime.Spec.MLPolicy.MPI = &trainerv1alpha1.MPIMLPolicySource{
		MPIImplementation: trainerv1alpha1.MPIImplementationOpenMPI,
		SSHAuthMountPath:  new(cmp.Or(old.Spec.SSHAuthMountPath, "/root/.ssh")),
		RunLauncherAsNode: new(asNode),
	}
	if old.Spec.LauncherCreationPolicy == "AtStartup" {
		p.note(
			at("spec", "launcherCreationPolicy"),
			"AtStartup is left out: the launcher starts when the nodes are ready",
		)
	} else if old.Spec.LauncherCreationPolicy != "" {
		p.note(at("spec", "launcherCreationPolicy"), "the launcher's dependsOn in the runtime says it now")
	}
	jobSet := s.jobSet()
	jobSet.Network = &jobsetv1alpha2.Network{
		PublishNotReadyAddresses: new(true),
	} // nodes are looked up before they are ready
	jobSet.SuccessPolicy = &jobsetv1alpha2.SuccessPolicy{ // the nodes serve until they are stopped
		Operator:             jobsetv1alpha2.OperatorAll,
		TargetReplicatedJobs: []string{trainerv1alpha1.LauncherName},
	}
	if len(replicas) > 1 {
		slices.Reverse(jobSet.ReplicatedJobs) // nodes first, as in the shipped runtimes
		jobSet.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{
			{Name: trainerv1alpha1.NodeName, Status: jobsetv1alpha2.DependencyReady},
		}
	}
}

// mpiReplica adds the ReplicatedJob of the launcher or of the nodes.
func (p *page) mpiReplica(s *successor, r replica, old mpiJob, version string) error {
	containers := r.spec.Template.Spec.Containers
	if len(containers) == 0 {
		return p.bad(r.where.child("template", "spec"), r.kind+" has no container", "write the one that runs MPI")
	}
	// The operators took the first container, unless a v1 job names another one.
	i := max(0, slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == old.Spec.MainContainer }))
	if old.Spec.MainContainer != "" && r.kind == "Launcher" {
		p.note(at("spec", "mainContainer"), "left out: the main container is called node now")
	}
	name := trainerv1alpha1.NodeName
	if r.kind == "Launcher" {
		name = trainerv1alpha1.LauncherName
	}
	job := p.replicated(name, r, old.Spec.RunPolicy)
	if r.kind == "Launcher" {
		trains(&job)
	}
	if err := p.rename(&job, r.where, i); err != nil {
		return err
	}
	template := r.where.child("template")
	p.environment(&job, template, s.stem(), mpiEnvironment())
	main := &job.Template.Spec.Template.Spec.Containers[i]
	where := template.child("spec", "containers", i)
	if r.kind == "Worker" && len(main.Command)+len(main.Args) == 0 {
		main.Command = []string{"/usr/sbin/sshd", "-De"}
		p.note(where, "it runs /usr/sbin/sshd -De, which the operator added where there was no command")
	}
	if version == "v1" {
		p.note(
			where.child("image"),
			"mpirun reaches the nodes by ssh now, no longer by kubectl exec: the image needs ssh and sshd",
		)
	}
	p.keysGroup(&job.Template.Spec.Template.Spec, i, where)
	s.jobSet().ReplicatedJobs = append(s.jobSet().ReplicatedJobs, job)
	return nil
}

// keysGroup lets a user other than root read the keys, which are files of the pod's fsGroup.
func (p *page) keysGroup(pod *corev1.PodSpec, i int, where path) {
	context := ptr.Deref(pod.SecurityContext, corev1.PodSecurityContext{})
	user := context.RunAsUser
	if own := pod.Containers[i].SecurityContext; own != nil && own.RunAsUser != nil {
		user = own.RunAsUser
	}
	if user == nil || *user == 0 || context.FSGroup != nil {
		return
	}
	context.FSGroup = new(*user)
	pod.SecurityContext = &context
	p.note(where, "the pod's securityContext has an fsGroup now, so that its user can read the ssh keys")
}
