package migrate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// environment maps the variables that an old operator set in a pod to the present ones.
type environment struct {
	// replaced are the old variables, and the replacement of each.
	replaced map[string]string
	// reserved are the variables that the controller sets over the runtime's.
	reserved []string
}

// mention finds variables in a shell's words ($RANK, ${RANK}), in Kubernetes' ($(RANK)) and in Python's
// (os.environ["RANK"], os.getenv('RANK')).
var mention = regexp.MustCompile(`(?:\$[({]?|(?:environ|getenv)[.a-z]*[\[(]\s*["'])([A-Za-z_][A-Za-z0-9_]*)`)

// said is a piece of text of a container and its place there.
type said struct {
	where path
	text  string
}

// texts are a container's command, arguments and values.
func texts(container corev1.Container) []said {
	var out []said
	for i, text := range container.Command {
		out = append(out, said{at("command", i), text})
	}
	for i, text := range container.Args {
		out = append(out, said{at("args", i), text})
	}
	for i, variable := range container.Env {
		out = append(out, said{at("env", i, "value"), variable.Value})
	}
	return out
}

// environment notes the variables of the old operator that a job's containers read, and removes variables that the
// controller sets itself. Template is the path of the pod template.
func (p *page) environment(job *jobsetv1alpha2.ReplicatedJob, template path, old string, env environment) {
	pod := &job.Template.Spec.Template.Spec
	for i := range pod.Containers {
		where := template.child("spec", "containers", i)
		container := &pod.Containers[i]
		for _, piece := range texts(*container) {
			p.mentions(where.child(piece.where...), piece.text, old, env)
		}
		p.reserve(container, where, env.reserved)
	}
	for i, container := range pod.InitContainers {
		for _, piece := range texts(container) {
			p.mentions(template.child("spec", "initContainers", i).child(piece.where...), piece.text, old, env)
		}
	}
	p.oldLabels(job, template)
}

// mentions notes each old variable, and each old host name, that a text mentions.
func (p *page) mentions(where path, text, old string, env environment) {
	var seen []string
	for _, found := range mention.FindAllStringSubmatch(text, -1) {
		name := found[1]
		now, replaced := env.replaced[name]
		if !replaced || slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		p.note(where, name+" is not in the pod's environment any more: "+now)
	}
	for _, suffix := range []string{"-master-0", "-worker-", "-launcher"} {
		if host := old + suffix; strings.Contains(text, host) {
			p.note(where, fmt.Sprintf("there is no pod %s any more: node number i is %s-node-0-i.%s", host, old, old))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(oldFiles())) {
		if strings.Contains(text, file) {
			p.note(where, "there is no "+file+" any more: "+oldFiles()[file])
		}
	}
}

// oldFiles returns the files that the MPI operators put into pods, and their replacement.
func oldFiles() map[string]string {
	return map[string]string{
		"/etc/mpi/kubexec.sh":        "mpirun reaches the nodes by ssh",
		"/etc/mpi/discover_hosts.sh": "/etc/mpi/hostfile lists the nodes, whose number is fixed",
	}
}

func (p *page) reserve(container *corev1.Container, where path, reserved []string) {
	for i, variable := range slices.Backward(container.Env) {
		if slices.Contains(reserved, variable.Name) {
			p.note(where.child("env", i), variable.Name+" is left out: the controller sets it")
			container.Env = slices.Delete(container.Env, i, i+1)
		}
	}
}

// oldLabels notes selectors of the labels that the old operators put on pods.
func (p *page) oldLabels(job *jobsetv1alpha2.ReplicatedJob, template path) {
	pod := job.Template.Spec.Template.Spec
	spread := map[string]any{"affinity": pod.Affinity, "topologySpreadConstraints": pod.TopologySpreadConstraints}
	for _, key := range slices.Sorted(maps.Keys(spread)) {
		text, err := json.Marshal(spread[key])
		if err == nil && strings.Contains(string(text), "training.kubeflow.org/") {
			p.note(template.child("spec", key), "pods have no labels training.kubeflow.org/* any more: select them by "+
				"jobset.sigs.k8s.io/jobset-name, which is the TrainJob's name")
		}
	}
}

// runs reports whether a container's command line names one of the programs.
func runs(container corev1.Container, programs ...string) bool {
	line := strings.Join(slices.Concat(container.Command, container.Args), " ")
	return slices.ContainsFunc(programs, func(program string) bool { return strings.Contains(line, program) })
}

// commandAt returns the path of a container's command, for the reader.
func commandAt(container corev1.Container, where path) path {
	switch {
	case len(container.Command) > 0:
		return where.child("command")
	case len(container.Args) > 0:
		return where.child("args")
	}
	return where.child("image")
}
