package movein

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// volcanoJob changes a Job of Volcano whose controller stays: it creates the pods, and Lockstep places them.
func (p *page) volcanoJob() {
	tasks := p.items(at("spec", "tasks"))
	if p.err == nil && len(tasks) == 0 {
		p.refuse(at("spec"), "the Job has no tasks", "write spec.tasks")
		return
	}
	name := p.name()
	pods, first := 0, 0
	for i := range tasks {
		task := at("spec", "tasks", i)
		n := p.number(task.child("replicas"), 0)
		pods += n
		if !p.has(task.child("dependsOn")) {
			first += n
		}
	}
	minimum := p.number(at("spec", "minAvailable"), 0)
	if minimum == 0 {
		minimum = pods
	}
	p.pods = podsOf{
		write: func(pod *corev1.Pod) { pod.Annotations[groupNameKey] = name },
		// The PodGroup that Volcano's controller creates for the Job.
		object:    map[string]any{"spec": map[string]any{"minMember": int64(minimum)}},
		describes: groupVolcano,
		scheduler: schedulerName,
	}
	p.keys()
	p.volcanoSchedulers()
	p.networkTopology(at("spec", "networkTopology"), nil)
	p.volcanoFields(minimum, first)
	for i := range tasks {
		p.volcanoTask(at("spec", "tasks", i), len(tasks))
	}
	if p.err == nil {
		p.gangs()
		p.volcanoStays()
	}
}

// volcanoSchedulers makes all pods Lockstep's: Volcano's webhook would fill in its own name where there is none.
func (p *page) volcanoSchedulers() {
	where := at("spec", "schedulerName")
	if name := p.text(where); name != schedulerName {
		p.set(where, schedulerName)
		if name == "" {
			name = "the default, volcano,"
		}
		p.note(changed, where, "%s is %s now", name, schedulerName)
	}
	for _, template := range p.parts.templates {
		own := template.child("spec", "schedulerName")
		if name := p.text(own); name != "" && name != schedulerName {
			p.set(own, schedulerName)
			p.note(changed, own, "%s is %s now", name, schedulerName)
		}
	}
}

// volcanoStays reports the parts of Volcano that have to stay installed.
func (p *page) volcanoStays() {
	p.note(
		stays,
		at("kind"),
		"Volcano's controller creates the pods and the PodGroup, and restarts them by policies; a TrainJob would "+
			"need neither",
	)
	p.note(
		todo,
		at("kind"),
		"keep Volcano's scheduler with actions: \"enqueue\" and no other: Volcano's controller creates pods when "+
			"that scheduler has let the PodGroup out of Pending",
	)
}

// volcanoFields reports on the fields of a Job. first counts the pods of tasks that depend on no other.
func (p *page) volcanoFields(minimum, first int) {
	spec := at("spec")
	if minimum > first {
		p.note(
			todo,
			spec.child("minAvailable"),
			"the gang waits for %s, and those of tasks with dependsOn are created when the others "+
				"run; write minAvailable: %d",
			count(minimum, "pod"),
			first,
		)
	}
	if queue := p.text(spec.child("queue")); queue != "" {
		p.note(
			unread,
			spec.child("queue"),
			"Lockstep has no queues, and Kueue takes no Jobs of Volcano; queue %s limits what Volcano's "+
				"scheduler lets in, and a TrainJob can be in a queue of Kueue",
			queue,
		)
	}
	if class := p.text(spec.child("priorityClassName")); class != "" {
		p.priority(spec.child("priorityClassName"), nil, class, unread)
	}
	for _, plugin := range sortedKeys(p.fields(spec.child("plugins"))) {
		p.note(stays, spec.child("plugins", plugin), "%s", pluginText(plugin))
	}
	if p.has(spec.child("runningEstimate")) {
		p.note(
			unread,
			spec.child("runningEstimate"),
			"Lockstep reads the end of TrainJobs only, from activeDeadlineSeconds",
		)
	}
	read := []string{
		"minAvailable",
		"queue",
		"priorityClassName",
		"plugins",
		"runningEstimate",
		"schedulerName",
		"tasks",
		"networkTopology",
	}
	controller := []string{"maxRetry", "minSuccess", "policies", "ttlSecondsAfterFinished", "volumes"}
	for _, field := range controller {
		if p.has(spec.child(field)) {
			p.note(stays, spec.child(field), "Volcano's controller reads it")
		}
	}
	p.unreadFields(
		spec,
		append(read, controller...),
		"no field that Volcano's Job is known to have; nothing in Lockstep reads it",
	)
}

// pluginText reports on a plugin of Volcano's controller, and its replacement for a TrainJob.
func pluginText(plugin string) string {
	const runs = "Volcano's controller runs it"
	switch plugin {
	case "pytorch":
		return runs + "; a TrainJob with runtime torch-distributed does the same"
	case "mpi":
		return runs + "; a TrainJob with a runtime whose mlPolicy is mpi does the same"
	case "ssh":
		return runs + "; a TrainJob with a runtime whose mlPolicy is mpi has keys of its own"
	case "svc":
		return runs + "; the JobSet of a TrainJob has a headless Service"
	case "env":
		return runs + "; pods of a TrainJob have JOB_COMPLETION_INDEX instead of VC_TASK_INDEX"
	}
	return runs + "; Lockstep has no counterpart, so the Job stays with Volcano's controller"
}

// volcanoTask reports on one of so many tasks.
func (p *page) volcanoTask(task path, of int) {
	replicas := p.number(task.child("replicas"), 0)
	if where := task.child("minAvailable"); p.has(where) && p.number(where, 0) != replicas {
		p.note(unread, where, "Lockstep counts the whole gang (spec.minAvailable), and not its tasks")
	}
	if p.text(task.child("topologyPolicy")) != "" {
		p.note(unread, task.child("topologyPolicy"), "the kubelet decides by its topology manager policy")
	}
	for _, field := range []string{"policies", "maxRetry", "dependsOn"} {
		if p.has(task.child(field)) {
			p.note(stays, task.child(field), "Volcano's controller reads it")
		}
	}
	if p.has(task.child("partitionPolicy")) {
		p.partitions(task, of)
	}
	p.unreadFields(task, []string{
		"name",
		"replicas",
		"template",
		"minAvailable",
		"topologyPolicy",
		"policies",
		"maxRetry",
		"dependsOn",
		"partitionPolicy",
	}, "no field that a task of Volcano is known to have; nothing in Lockstep reads it")
}

// partitions turns the partitions of the only task into segments.
func (p *page) partitions(task path, tasks int) {
	where := task.child("partitionPolicy")
	size := p.number(where.child("partitionSize"), 0)
	if tasks > 1 || size == 0 {
		p.note(
			unread,
			where,
			"segments are of ranks of the whole gang, and this Job has %s; for one task write %s and %s",
			count(tasks, "task"),
			topology.AnnotationSegmentSize,
			topology.AnnotationSegmentTopology,
		)
		return
	}
	if p.has(where.child("minPartitions")) {
		p.note(unread, where.child("minPartitions"), "Lockstep counts pods (spec.minAvailable), and not partitions")
	}
	if p.fields(where.child("networkTopology")) == nil {
		p.note(unread, where, "no network topology is asked for, so the partitions need no segments")
		return
	}
	wanted := p.tierOf(where.child("networkTopology"), task)
	wanted.hard = topology.AnnotationSegmentTopology
	if p.tier(wanted) {
		p.wish(where.child("partitionSize"), task, topology.AnnotationSegmentSize, strconv.Itoa(size))
		p.removeTier(where.child("networkTopology"))
	}
}
