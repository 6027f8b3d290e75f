package migrate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// replicaSpec is one kind of an old job's pods.
type replicaSpec struct {
	Replicas      *int32                 `json:"replicas"`
	RestartPolicy string                 `json:"restartPolicy"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

// replica is a replicaSpec and its name.
type replica struct {
	kind  string // Master, Worker or Launcher
	where path
	count int32
	spec  replicaSpec
	// restart is the restart policy of the pods' Job.
	restart corev1.RestartPolicy
}

// replicas reads the replica specs at a path. Kinds are those that the job may have; the result has their order, and
// not those that want no pods.
func (p *page) replicas(where path, specs map[string]replicaSpec, kinds ...string) ([]replica, error) {
	found := map[string]replica{}
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		place := where.child(key)
		i := slices.IndexFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, key) })
		if i < 0 {
			return nil, p.bad(place, "there is no replica type "+key, "use "+strings.Join(kinds, " or "))
		}
		r := replica{kind: kinds[i], where: place, count: 1, spec: specs[key]}
		if r.spec.Replicas != nil {
			r.count = *r.spec.Replicas
		}
		if r.count < 0 {
			return nil, p.bad(place.child("replicas"), "replicas is below 0", "write how many pods there are")
		}
		if _, twice := found[r.kind]; twice {
			return nil, p.bad(place, r.kind+" is there twice", "remove one of them")
		}
		found[r.kind] = r
	}
	var wanted []replica
	for _, kind := range kinds {
		r, said := found[kind]
		if said && r.count == 0 {
			p.note(r.where, "left out: it has no pods (replicas is 0)")
		} else if said {
			wanted = append(wanted, r)
		}
	}
	if len(wanted) == 0 {
		return nil, p.bad(where, "the job has no pods", "give it at least one of "+strings.Join(kinds, ", "))
	}
	return wanted, nil
}

// restarting decides each replica's restart policy. Fallback is the old operator's default.
func (p *page) restarting(replicas []replica, fallback corev1.RestartPolicy) {
	for i := range replicas {
		r := &replicas[i]
		where := r.where.child("restartPolicy")
		switch said := r.spec.RestartPolicy; said {
		case "":
			r.restart = fallback
		case string(corev1.RestartPolicyNever), string(corev1.RestartPolicyOnFailure):
			r.restart = corev1.RestartPolicy(said)
		case string(corev1.RestartPolicyAlways):
			r.restart = corev1.RestartPolicyOnFailure
			p.note(where, "it is OnFailure now: the pods of a Job may end well")
		case "ExitCode":
			r.restart = corev1.RestartPolicyNever
			p.note(
				where,
				"it is Never now, and a failed pod counts whatever its exit code; a podFailurePolicy in the runtime's "+
					"Job template can tell exit codes apart",
			)
		default:
			r.restart = fallback
			p.note(where, fmt.Sprintf("%s is unknown: it is %s now", said, fallback))
		}
	}
}

// replicated is the ReplicatedJob that runs the pods of r. A pod that failed for good fails its Job, as it failed the
// old job, where the user requested no retry, or a retry of the whole job (the run policy's backoffLimit).
func (p *page) replicated(name string, r replica, policy runPolicy) jobsetv1alpha2.ReplicatedJob {
	job := jobsetv1alpha2.ReplicatedJob{
		Name:     name,
		Replicas: 1,
		Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: *r.spec.Template.DeepCopy()}},
	}
	if r.restart == corev1.RestartPolicyNever && r.spec.RestartPolicy != "ExitCode" || policy.BackoffLimit != nil {
		job.Template.Spec.BackoffLimit = new(int32(0))
	}
	pod := &job.Template.Spec.Template.Spec
	if said := pod.RestartPolicy; said != "" && said != r.restart {
		p.note(r.where.child("template", "spec", "restartPolicy"),
			fmt.Sprintf("%s is left out: the replica's own policy, %s, counts, as before", said, r.restart))
	}
	pod.RestartPolicy = r.restart
	if said := pod.SchedulerName; said != "" {
		p.note(
			r.where.child("template", "spec", "schedulerName"),
			said+" stays, so that scheduler places the pods; remove it "+
				"to let Lockstep place them as a gang",
		)
	}
	return job
}

// trains marks a ReplicatedJob as the one that trains.
func trains(job *jobsetv1alpha2.ReplicatedJob) {
	job.Template.Labels = map[string]string{trainerv1alpha1.LabelAncestor: trainerv1alpha1.AncestorTrainer}
}

// rename renames the container at index i of a job's pods to node, the name of the main container.
func (p *page) rename(job *jobsetv1alpha2.ReplicatedJob, where path, i int) error {
	pod := &job.Template.Spec.Template.Spec
	old := pod.Containers[i].Name
	place := where.child("template", "spec", "containers", i, "name")
	if old == trainerv1alpha1.NodeName {
		return nil
	}
	for _, container := range slices.Concat(pod.Containers, pod.InitContainers) {
		if container.Name == trainerv1alpha1.NodeName {
			return p.bad(where.child("template", "spec"), "a container that does not train is called node",
				"give it another name; the one that trains, "+old+", will be called node")
		}
	}
	pod.Containers[i].Name = trainerv1alpha1.NodeName
	p.note(place, "container "+old+" is called node now")
	spec := where.child("template", "spec")
	for v, volume := range pod.Volumes {
		if volume.DownwardAPI == nil {
			continue
		}
		for n, item := range volume.DownwardAPI.Items {
			p.renameIn(item.ResourceFieldRef, spec.child("volumes", v, "downwardAPI", "items", n), old)
		}
	}
	p.renameInEnv(pod.InitContainers, spec.child("initContainers"), old)
	p.renameInEnv(pod.Containers, spec.child("containers"), old)
	return nil
}

func (p *page) renameInEnv(containers []corev1.Container, where path, old string) {
	for i, container := range containers {
		for n, variable := range container.Env {
			if variable.ValueFrom != nil {
				p.renameIn(variable.ValueFrom.ResourceFieldRef, where.child(i, "env", n, "valueFrom"), old)
			}
		}
	}
}

func (p *page) renameIn(selector *corev1.ResourceFieldSelector, where path, old string) {
	if selector != nil && selector.ContainerName == old {
		selector.ContainerName = trainerv1alpha1.NodeName
		p.note(where.child("resourceFieldRef", "containerName"), "container "+old+" is called node now")
	}
}

// container is the index of the container called name.
func (p *page) container(r replica, name string) (int, error) {
	containers := r.spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return 0, p.bad(r.where.child("template", "spec", "containers"), r.kind+" has no container called "+name,
			"call the one that trains "+name)
	}
	return i, nil
}

// one returns the replica with the pod template of all nodes, and the number of nodes. Replicas are those of a Master
// and of a Worker, in this order; each place where the other's template differs is noted.
func (p *page) one(replicas []replica) (replica, int32) {
	kept := replicas[len(replicas)-1]
	nodes := kept.count
	for _, other := range replicas[:len(replicas)-1] {
		nodes += other.count
		p.differences(other, kept, at("template"))
		if other.restart != kept.restart {
			p.note(
				other.where.child("restartPolicy"),
				fmt.Sprintf("left out: all nodes are one Job, whose restart policy is "+
					"%s's, %s", kept.kind, kept.restart),
			)
		}
		p.note(other.where, fmt.Sprintf("it is one of the %d nodes now, the one of rank 0", nodes))
	}
	return kept, nodes
}

// differences notes each place where the template of the dropped replica differs from that of the other.
func (p *page) differences(dropped, kept replica, where path) {
	was, now := p.value(dropped.where.child(where...)), p.value(kept.where.child(where...))
	wasFields, wasMap := was.(map[string]any)
	nowFields, nowMap := now.(map[string]any)
	wasItems, wasList := was.([]any)
	nowItems, nowList := now.([]any)
	switch {
	case reflect.DeepEqual(was, now), where.String() == "template.spec.restartPolicy":
	case wasMap && nowMap:
		all := maps.Clone(wasFields)
		maps.Copy(all, nowFields)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			p.differences(dropped, kept, where.child(key))
		}
	case wasList && nowList && len(wasItems) == len(nowItems) && isObjects(wasItems):
		for i := range wasItems {
			p.differences(dropped, kept, where.child(i))
		}
	case was == nil:
		p.note(kept.where.child(where...), "the node of rank 0 gets it too: "+dropped.kind+" did not have it")
	case now == nil:
		p.note(
			dropped.where.child(where...),
			"left out: all nodes get the pod template of "+kept.kind+", which does not have it",
		)
	default:
		p.note(
			dropped.where.child(where...),
			"left out: all nodes get the pod template of "+kept.kind+", which says otherwise",
		)
	}
}

func isObjects(items []any) bool {
	return !slices.ContainsFunc(items, func(item any) bool {
		_, isMap := item.(map[string]any)
		return !isMap
	})
}
