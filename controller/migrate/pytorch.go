package migrate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// pyTorchJob is a PyTorchJob, as far as it is read.
type pyTorchJob struct {
	oldObject `json:",inline"`
	Spec      struct {
		RunPolicy     runPolicy              `json:"runPolicy"`
		ElasticPolicy *pyTorchElastic        `json:"elasticPolicy"`
		Replicas      map[string]replicaSpec `json:"pytorchReplicaSpecs"`
		NprocPerNode  *intstr.IntOrString    `json:"nprocPerNode"`
	} `json:"spec"`
}

// pyTorchElastic is the part of a PyTorchJob that made it elastic.
type pyTorchElastic struct {
	MinReplicas  *int32 `json:"minReplicas"`
	MaxReplicas  *int32 `json:"maxReplicas"`
	RDZVBackend  any    `json:"rdzvBackend"`
	RDZVPort     any    `json:"rdzvPort"`
	RDZVHost     any    `json:"rdzvHost"`
	RDZVID       any    `json:"rdzvId"`
	RDZVConf     any    `json:"rdzvConf"`
	Standalone   any    `json:"standalone"`
	NProcPerNode *int32 `json:"nProcPerNode"`
	MaxRestarts  *int32 `json:"maxRestarts"`
	Metrics      any    `json:"metrics"`
}

// pyTorchEnvironment returns the environment of PyTorchJob's pods.
func pyTorchEnvironment() environment {
	torchrun := "torchrun sets it for the processes that it starts"
	return environment{
		replaced: map[string]string{
			"MASTER_ADDR":       "use PET_MASTER_ADDR; " + torchrun,
			"MASTER_PORT":       "use PET_MASTER_PORT; " + torchrun,
			"RANK":              "the pod's rank is PET_NODE_RANK; torchrun sets RANK, the process's, for each that it starts",
			"WORLD_SIZE":        "the number of nodes is PET_NNODES; torchrun sets WORLD_SIZE, the number of processes",
			"PET_RDZV_ENDPOINT": "use $(PET_MASTER_ADDR):$(PET_MASTER_PORT)",
			"PET_RDZV_BACKEND":  "torchrun takes it as --rdzv-backend, static if nothing is said",
			"PET_RDZV_ID":       "torchrun takes it as --rdzv-id",
			"PET_RDZV_CONF":     "torchrun takes it as --rdzv-conf",
			"PET_MAX_RESTARTS":  "torchrun takes it as --max-restarts",
		},
		reserved: []string{"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"},
	}
}

// pyTorchJob makes a runtime and a TrainJob of a PyTorchJob. Master and workers are nodes alike, the Master's rank is 0.
func (p *page) pyTorchJob() ([]map[string]any, error) {
	var old pyTorchJob
	if err := p.fill(p.copyWithoutServer(), nil, &old); err != nil {
		return nil, err
	}
	s, err := p.successor(old.Metadata, "torch")
	if err != nil {
		return nil, err
	}
	s.runtime.Spec.MLPolicy.Torch = &trainerv1alpha1.TorchMLPolicySource{}
	container, err := p.nodes(s, flat{
		specs:     old.Spec.Replicas,
		where:     at("spec", "pytorchReplicaSpecs"),
		kinds:     []string{"Master", "Worker"},
		container: "pytorch",
		restart:   corev1.RestartPolicyOnFailure,
		env:       pyTorchEnvironment(),
		policy:    old.Spec.RunPolicy,
	})
	if err != nil {
		return nil, err
	}
	if !runs(container.Container, "torchrun", "torch.distributed", "accelerate", "deepspeed") {
		p.note(
			commandAt(container.Container, container.where),
			"it does not start torchrun, so its process finds no RANK, "+
				"WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment: start it with torchrun, which sets them (or read "+
				"PET_NODE_RANK, PET_NNODES, PET_MASTER_ADDR and PET_MASTER_PORT)",
		)
	}
	if said := old.Spec.NprocPerNode; said != nil {
		if s.job.Spec.Trainer.NumProcPerNode, err = p.processes(at("spec", "nprocPerNode"), said.String()); err != nil {
			return nil, err
		}
	}
	if old.Spec.ElasticPolicy != nil {
		p.pyTorchElastic(s, *old.Spec.ElasticPolicy)
	}
	if err := p.live(s, old.Spec.RunPolicy); err != nil {
		return nil, err
	}
	return p.finish(s)
}

// pyTorchElastic converts the parts of the elastic policy that do not need an elastic job.
func (p *page) pyTorchElastic(s *successor, policy pyTorchElastic) {
	where := at("spec", "elasticPolicy")
	nodes := fmt.Sprintf(
		"left out: the number of nodes is fixed, spec.trainer.numNodes says %d",
		*s.job.Spec.Trainer.NumNodes,
	)
	if policy.MinReplicas != nil {
		p.note(where.child("minReplicas"), nodes)
	}
	if policy.MaxReplicas != nil {
		p.note(where.child("maxReplicas"), nodes)
	}
	if policy.Metrics != nil {
		p.note(where.child("metrics"), "left out: nothing scales a job while it runs")
	}
	rendezvous := map[string]any{
		"rdzvBackend": policy.RDZVBackend, "rdzvPort": policy.RDZVPort, "rdzvHost": policy.RDZVHost,
		"rdzvId": policy.RDZVID, "rdzvConf": policy.RDZVConf, "standalone": policy.Standalone,
	}
	flags := map[string]string{
		"rdzvBackend": "rdzv-backend", "rdzvPort": "rdzv-endpoint", "rdzvHost": "rdzv-endpoint", "rdzvId": "rdzv-id",
		"rdzvConf": "rdzv-conf", "standalone": "standalone",
	}
	for _, key := range []string{"rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "standalone"} {
		if rendezvous[key] != nil {
			p.note(where.child(key), "left out: nodes meet at PET_MASTER_ADDR:PET_MASTER_PORT; torchrun's flag --"+
				flags[key]+" says otherwise where it must")
		}
	}
	if processes := policy.NProcPerNode; processes != nil {
		if s.job.Spec.Trainer.NumProcPerNode == nil {
			s.job.Spec.Trainer.NumProcPerNode = new(*processes)
			p.note(where.child("nProcPerNode"), "it is spec.trainer.numProcPerNode of the TrainJob now")
		} else {
			p.note(where.child("nProcPerNode"), "left out: spec.nprocPerNode says it")
		}
	}
	if restarts := policy.MaxRestarts; restarts != nil {
		s.restarts(*restarts)
		p.note(
			where.child("maxRestarts"),
			"it is the JobSet template's failurePolicy.maxRestarts now (backoffLimit counts "+
				"if both are there): the whole job restarts, not only its processes",
		)
	}
}
