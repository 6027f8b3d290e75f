package operators_test

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// loss is the reaction of a kind's owner when a pod of a running gang is deleted.
type loss string

const (
	// again: the member is recreated alone, on its former node if it has a rank.
	again loss = "comes back alone"
	// all: every member is deleted and recreated.
	all loss = "all are restarted"
	// gone: it is not created again, and the others continue.
	gone loss = "does not come back"
)

// kind is a kind of gang that another project makes.
type kind struct {
	// name is that of its file in testdata, title its usual name.
	name, title string
	// operators are the programs that make the pods, in package operators; none for one that always runs. by names the
	// first for people.
	operators []string
	by        string
	// dialect is the note of its PodGroup that it was read; empty for Kubernetes' own.
	dialect string
	// gate is a feature gate that the cluster needs, NAME=true.
	gate string
	// owners are the objects whose deletion ends the gang.
	owners []schema.GroupVersionResource
	// rank returns a pod's place; nil if the kind has none.
	rank func(corev1.Pod) (int, bool)
	loss loss
	// migrated is set if its file is one for another scheduler, which lockstep migrate changes.
	migrated bool
}

func owners(all ...schema.GroupVersionResource) []schema.GroupVersionResource { return all }

func resource(resource, version, group string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// maker names the program that makes the pods, with its release.
func (k kind) maker() string {
	if len(k.operators) == 0 {
		return k.by
	}
	return k.by + " " + operator(k.operators[0]).Module.Version
}

// number reads a rank from a label or annotation.
func number(key string) func(corev1.Pod) (int, bool) {
	return func(pod corev1.Pod) (int, bool) {
		rank, err := strconv.Atoi(cmp.Or(pod.Labels[key], pod.Annotations[key]))
		return rank, err == nil
	}
}

// kinds are those with controllers that run here, as they were released.
func kinds() []kind {
	const index = "batch.kubernetes.io/job-completion-index"
	return []kind{
		{
			name:    "job",
			title:   "Job, indexed",
			by:      "Kubernetes",
			dialect: "job",
			owners:  owners(resource("jobs", "v1", "batch")),
			rank:    number(index),
			loss:    again,
		},
		{
			name:    "statefulset",
			title:   "StatefulSet",
			by:      "Kubernetes",
			dialect: "statefulset",
			owners:  owners(resource("statefulsets", "v1", "apps")),
			rank:    number("apps.kubernetes.io/pod-index"),
			loss:    again,
		},
		{
			name:    "jobset",
			title:   "JobSet",
			by:      "JobSet v0.12.0",
			dialect: "jobset",
			owners:  owners(resource("jobsets", "v1alpha2", "jobset.x-k8s.io")),
			rank: func(pod corev1.Pod) (int, bool) {
				job, known := number("jobset.sigs.k8s.io/job-global-index")(pod)
				place, has := number(index)(pod)
				const half = whole / 2
				return job*half + place, known && has
			},
			loss: again,
		},
		{
			name: "kueue", title: "group of plain pods", by: "Kueue v0.19.2", dialect: "kueue",
			owners: owners(resource("workloads", "v1beta2", "kueue.x-k8s.io")),
			rank:   number("kueue.x-k8s.io/pod-group-pod-index"), loss: gone,
		},
		asDocumented("kai", "PodGroup of KAI", nil, resource("podgroups", "v2alpha2", "scheduling.run.ai")),
		asDocumented(
			"grove",
			"PodGang of Grove",
			number("grove.io/podclique-pod-index"),
			resource("podgangs", "v1alpha1", "scheduler.grove.io"),
		),
		asDocumented("yunikorn", "task groups of YuniKorn", nil),
		asDocumented("koordinator", "gang of Koordinator", nil),
		asDocumented("ack", "gang of ACK", nil),
		asDocumented("armada", "gang of Armada", nil),
		{
			name:      "leaderworkerset",
			title:     "LeaderWorkerSet",
			by:        "LeaderWorkerSet",
			operators: []string{"leaderworkerset"},
			dialect:   "leaderworkerset",
			owners: owners(resource(
				"leaderworkersets",
				"v1",
				"leaderworkerset.x-k8s.io",
			)),
			rank: number("leaderworkerset.sigs.k8s.io/worker-index"),
			loss: all,
		},
		{
			name:      "mpijob",
			title:     "MPIJob",
			by:        "MPI operator",
			operators: []string{"mpi-operator"},
			dialect:   "scheduler-plugins",
			owners: owners(resource(
				"mpijobs",
				"v2beta1",
				"kubeflow.org",
			)),
			rank: number("training.kubeflow.org/replica-index"),
			loss: again,
		},
		{
			name:      "pytorchjob",
			title:     "PyTorchJob",
			by:        "training-operator",
			operators: []string{"training-operator"},
			dialect:   "scheduler-plugins",
			owners:    owners(resource("pytorchjobs", "v1", "kubeflow.org")),
			rank:      torchRank,
			loss:      again,
		},
		{
			name:      "raycluster",
			title:     "RayCluster",
			by:        "KubeRay",
			operators: []string{"kuberay"},
			dialect:   "scheduler-plugins",
			owners:    owners(resource("rayclusters", "v1", "ray.io")),
			rank:      number("ray.io/worker-group-replica-index"),
			loss:      again,
		},
		{
			name:      "volcanojob",
			title:     "Volcano Job, migrated",
			by:        "Volcano's controllers",
			operators: []string{"volcano", "volcano-scheduler"},
			dialect:   "volcano",
			owners:    owners(resource("jobs", "v1alpha1", "batch.volcano.sh")),
			rank:      number("volcano.sh/task-index"),
			loss:      all,
			migrated:  true,
		},
		{
			name:      "rayjob",
			title:     "RayJob, migrated",
			by:        "KubeRay",
			operators: []string{"kuberay-alone"},
			dialect:   "scheduler-plugins",
			owners: owners(
				resource("rayjobs", "v1", "ray.io"),
				resource("podgroups", "v1alpha1", "scheduling.x-k8s.io"),
			),
			rank:     number("ray.io/worker-group-replica-index"),
			loss:     again,
			migrated: true,
		},
		// From here on the cluster changes: Lockstep's controller does not run beside the one, and the other needs a
		// gate, with which all Jobs have PodGroups.
		{
			name:      "trainjob",
			title:     "TrainJob with `coscheduling`",
			by:        "Kubeflow Trainer",
			operators: []string{"kubeflow-trainer"},
			dialect:   "scheduler-plugins",
			owners:    owners(resource("trainjobs", "v1alpha1", "trainer.kubeflow.org")),
			rank:      number(index),
			loss:      again,
		},
		{
			name:   "workloadwithjob",
			title:  "Job with `spec.scheduling`",
			by:     "Kubernetes",
			gate:   "WorkloadWithJob=true",
			owners: owners(resource("jobs", "v1", "batch")),
			rank:   number(index),
			loss:   again,
		},
	}
}

// asDocumented is a kind whose controller is not here: the test makes the objects that its project documents.
func asDocumented(name, title string, rank func(corev1.Pod) (int, bool), groups ...schema.GroupVersionResource) kind {
	return kind{
		name:    name,
		title:   title,
		by:      "the test, as documented",
		dialect: name,
		owners:  append(groups, resource("pods", "v1", "")),
		rank:    rank,
		loss:    gone,
	}
}

// torchRank returns the rank that training-operator sets for a PyTorchJob's pod.
func torchRank(pod corev1.Pod) (int, bool) {
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == "RANK" {
			rank, err := strconv.Atoi(variable.Value)
			return rank, err == nil
		}
	}
	return 0, false
}
