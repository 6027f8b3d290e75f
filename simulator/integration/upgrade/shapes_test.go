package upgrade_test

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// shape is the name of a job's runtime.
type shape string

// Jobs of each shape report to the status server. The pods of torch and staged have the next release's variable; those
// of MPI and Flux mount a Secret, whose name this release ends randomly.
const (
	torch  shape = "torch"
	mpi    shape = "mpi"
	flux   shape = "flux"
	staged shape = "staged" // torch after an initializer
	// urgent is torch of a runtime that names a priority class.
	urgent shape = "urgent"
)

// shapeOf returns the shape of a job by the number in its name. Of every ten numbers, two are of each shape but torch,
// which has the rest; odd and even numbers have all shapes.
func shapeOf(name string) shape {
	switch numberOf(name) % 5 {
	case 1:
		return mpi
	case 2:
		return flux
	case 3:
		return staged
	}
	if namesClass(name) && numberOf(name)%10 == 9 {
		return urgent
	}
	return torch
}

// namesClass reports whether a job has a priority class, by its own annotation or by its runtime's: the previous
// release knows none, so only jobs that are created later do.
func namesClass(name string) bool {
	return numberOf(name) >= jobsPerKind() && numberOf(name)%5 == 4
}

// torchRuns reports whether the pods of the shape have the variable by which the next release differs.
func (s shape) torchRuns() bool { return s != mpi && s != flux }

// podsPerJob is the number of pods of each job that run at once; of an MPI job, one is the launcher.
const podsPerJob = 2

func numberOf(name string) int {
	_, digits, _ := strings.Cut(name, "-")
	number, err := strconv.Atoi(digits)
	if err != nil {
		panic(err) // this package names the jobs
	}
	return number
}

// runtimes returns the runtimes of all shapes but urgent. Their pods run until the test completes them, those of the
// initializer a second.
func runtimes() []map[string]any {
	const longest = "24h"
	return []map[string]any{
		testcluster.TorchRuntime(string(torch), longest),
		runtimeOf(mpi, map[string]any{"mpi": map[string]any{
			"numProcPerNode": int64(1), "mpiImplementation": "OpenMPI", "sshAuthMountPath": "/root/.ssh",
		}}, role("node", "", longest), after("node", "Ready", role("launcher", "trainer", longest))),
		runtimeOf(
			flux,
			map[string]any{"flux": map[string]any{"numProcPerNode": int64(1)}},
			role("node", "trainer", longest),
		),
		runtimeOf(staged, map[string]any{"torch": map[string]any{}},
			withWorkspace(role("dataset-initializer", "dataset-initializer", "1s")),
			after("dataset-initializer", "Complete", withWorkspace(role("node", "trainer", longest)))),
	}
}

// urgentRuntime returns the runtime of shape urgent.
func urgentRuntime() map[string]any {
	runtime := testcluster.TorchRuntime(string(urgent), "24h")
	metadata, _ := runtime["metadata"].(map[string]any)
	metadata["annotations"] = map[string]any{priorityKey: priorityClass}
	return runtime
}

// runtimeOf returns a TrainingRuntime of two nodes, without version and namespace.
func runtimeOf(name shape, policy map[string]any, roles ...any) map[string]any {
	policy["numNodes"] = int64(2)
	return map[string]any{
		"kind": "TrainingRuntime", "metadata": map[string]any{"name": string(name)},
		"spec": map[string]any{
			"mlPolicy": policy,
			"template": map[string]any{"spec": map[string]any{"replicatedJobs": roles}},
		},
	}
}

// role returns a ReplicatedJob of a step, whose fake pods run for a time.
func role(name, step, runTime string) map[string]any {
	template := map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"simulator.lockstep.dev/run-time": runTime}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": containerOf(name), "image": "example.com/" + name + ":1"},
		}},
	}}}
	if step != "" {
		template["metadata"] = map[string]any{
			"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": step},
		}
	}
	return map[string]any{"name": name, "template": template}
}

// containerOf returns the name of the container of a role. That of an MPI launcher is called as that of the nodes.
func containerOf(role string) string {
	if role == "launcher" {
		return "node"
	}
	return role
}

// withWorkspace mounts the volume that initializers need into the container of a role.
func withWorkspace(role map[string]any) map[string]any {
	pod, _, _ := unstructured.NestedFieldNoCopy(role, "template", "spec", "template", "spec")
	spec, _ := pod.(map[string]any)
	spec["volumes"] = []any{map[string]any{"name": "initializer", "emptyDir": map[string]any{}}}
	containers, _ := spec["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container["volumeMounts"] = []any{map[string]any{"name": "initializer", "mountPath": "/workspace"}}
	return role
}

// after has a role start when another has reached a status.
func after(other, status string, role map[string]any) map[string]any {
	role["dependsOn"] = []any{map[string]any{"name": other, "status": status}}
	return role
}
