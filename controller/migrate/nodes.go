package migrate

import (
	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// flat describes the pods of an old job that become nodes alike.
type flat struct {
	specs map[string]replicaSpec
	where path
	// kinds are the replica types that the job may have, that of rank 0 first.
	kinds []string
	// container is the name of the container that trains.
	container string
	// restart is the old operator's default restart policy.
	restart corev1.RestartPolicy
	env     environment
	policy  runPolicy
}

// placed is a container and where the user wrote it.
type placed struct {
	corev1.Container
	where path
}

// nodes gives a successor one ReplicatedJob of nodes, and returns the container that trains.
func (p *page) nodes(s *successor, old flat) (placed, error) {
	replicas, err := p.replicas(old.where, old.specs, old.kinds...)
	if err != nil {
		return placed{}, err
	}
	p.restarting(replicas, old.restart)
	kept, count := p.one(replicas)
	i, err := p.container(kept, old.container)
	if err != nil {
		return placed{}, err
	}
	job := p.replicated(trainerv1alpha1.NodeName, kept, old.policy)
	trains(&job)
	if err := p.rename(&job, kept.where, i); err != nil {
		return placed{}, err
	}
	template := kept.where.child("template")
	main := placed{
		Container: *job.Template.Spec.Template.Spec.Containers[i].DeepCopy(),
		where:     template.child("spec", "containers", i),
	}
	p.environment(&job, template, s.stem(), old.env)
	s.jobSet().ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{job}
	s.job.Spec.Trainer.NumNodes = new(count)
	return main, nil
}
