package movein

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mpiJob changes an MPIJob that stays with the MPI operator, which marks the pods and creates their PodGroup.
func (p *page) mpiJob() {
	p.keep = true
	name := p.name()
	policy := at("spec", "runPolicy", "schedulingPolicy")
	minimum := 1
	replicas := at("spec", "mpiReplicaSpecs")
	for kind := range p.fields(replicas) {
		if strings.EqualFold(kind, "Worker") {
			minimum += p.number(replicas.child(kind, "replicas"), 0)
		}
	}
	minimum = p.number(policy.child("minAvailable"), minimum)
	p.pods = podsOf{
		write:     func(pod *corev1.Pod) { pod.Labels[podGroupLabel] = name },
		object:    map[string]any{"spec": map[string]any{"minMember": int64(minimum)}},
		describes: groupCoscheduling,
		scheduler: schedulerName,
	}
	p.keys()
	p.schedulers()
	p.schedulingPolicy(policy)
	if where := at("spec", "launcherCreationPolicy"); p.text(where) == "WaitForWorkersReady" {
		p.note(
			todo,
			where,
			"the gang of %s waits for the launcher, which is created when the workers run; write AtStartup, or "+
				"schedulingPolicy.minAvailable: %d",
			count(minimum, "pod"),
			max(1, minimum-1),
		)
	}
	p.note(
		todo,
		at("kind"),
		"run mpi-operator with --gang-scheduling=%s: it creates the PodGroup and labels the pods",
		schedulerName,
	)
	p.gangs()
}

// schedulingPolicy reports on the fields that the MPI operator passes to a gang scheduler.
func (p *page) schedulingPolicy(where path) {
	if p.has(where.child("minAvailable")) {
		p.note(stays, where.child("minAvailable"), "the MPI operator writes it as the PodGroup's minMember")
	}
	if queue := where.child("queue"); p.text(queue) != "" {
		p.note(unread, queue, "Lockstep has no queues; for Kueue, label the MPIJob %s", kueueLabel)
	}
	if class := where.child("priorityClass"); p.text(class) != "" {
		p.priority(class, nil, p.text(class), unread)
	}
	if p.has(where.child("minResources")) {
		p.note(unread, where.child("minResources"), "Lockstep plans the whole gang, and needs no sum")
	}
	if p.has(where.child("scheduleTimeoutSeconds")) {
		p.note(unread, where.child("scheduleTimeoutSeconds"), "a gang that does not fit waits without holding anything")
	}
	p.unreadFields(where, []string{"minAvailable", "queue", "priorityClass", "minResources", "scheduleTimeoutSeconds"},
		"nothing in Lockstep reads it")
}

// mpiTrainJob changes the marks of an MPIJob that package migrate makes a TrainJob of.
func (p *page) mpiTrainJob() {
	p.note(changed, at("kind"), "the MPIJob is a TrainJob now; with --keep-mpijobs it stays with the MPI operator")
	p.workload()
}
