package movein

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// schedulerName is the name by which pods choose Lockstep's scheduler.
const schedulerName = "lockstep-scheduler"

// valuesPath is the path of the rows of dialects in the chart's values.
const valuesPath = "scheduler.pluginArgs.GangPlacement.dialects"

// Keys of a document and of its parts.
const (
	metadata    = "metadata"
	labels      = "labels"
	annotations = "annotations"
)

// podsOf holds the fields that a controller writes on the pods that it creates.
type podsOf struct {
	write func(*corev1.Pod)
	// object gives the gang's size to dialects whose objects are of the API group describes.
	object    map[string]any
	describes string
	// scheduler is the name that the controller fills in where a template has none.
	scheduler string
}

// controllerOf returns the fields that the controller of a kind writes on pods, as far as dialects read them.
func controllerOf(of typed, name string, object map[string]any) podsOf {
	write := map[string]func(*corev1.Pod){
		"batch/Job": func(pod *corev1.Pod) { pod.Labels["batch.kubernetes.io/job-name"] = name },
		"jobset.x-k8s.io/JobSet": func(pod *corev1.Pod) {
			pod.Labels["jobset.sigs.k8s.io/jobset-name"] = name
		},
		"leaderworkerset.x-k8s.io/LeaderWorkerSet": func(pod *corev1.Pod) {
			const prefix = "leaderworkerset.sigs.k8s.io/"
			pod.Labels[prefix+"name"], pod.Labels[prefix+"group-index"] = name, "0"
			size, _ := valueAt(object, at("spec", "leaderWorkerTemplate")).(map[string]any)
			if count, has := size["size"]; has {
				pod.Annotations[prefix+"size"] = fmt.Sprint(count)
			} else {
				pod.Annotations[prefix+"size"] = "1"
			}
		},
		"apps/StatefulSet": func(pod *corev1.Pod) {
			pod.Name = name + "-0"
			pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
		},
	}[of.group+"/"+of.kind]
	return podsOf{write: write, object: object, describes: of.group}
}

// pod builds a pod of a template as its controller creates it.
func (p *page) pod(template path, pods podsOf) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name = p.name()
	pod.Labels, pod.Annotations = map[string]string{}, map[string]string{}
	for key := range p.fields(template.child(metadata, labels)) {
		pod.Labels[key] = p.text(template.child(metadata, labels, key))
	}
	for key := range p.fields(template.child(metadata, annotations)) {
		pod.Annotations[key] = p.text(template.child(metadata, annotations, key))
	}
	if pods.write != nil {
		pods.write(pod)
	}
	return pod
}

// gangs reports the dialect that reads the marks of the pods, and the needs of the gang.
func (p *page) gangs() {
	reported := map[string]bool{}
	for _, template := range p.parts.templates {
		name := cmp.Or(p.text(template.child("spec", "schedulerName")), p.pods.scheduler)
		if name != schedulerName {
			p.note(todo, template.child("spec"), "schedulerName is %s, so these pods are not Lockstep's; write %s",
				cmp.Or(name, "not set"), schedulerName)
			continue
		}
		pod := p.pod(template, p.pods)
		mark, marked := p.run.table.Read(pod)
		if reported[mark.PodGroup] {
			continue
		}
		reported[mark.PodGroup] = true
		if !marked {
			p.note(stays, template.child("spec"), "no dialect marks these pods, so they are placed one by one")
			continue
		}
		p.gang(template, pod, mark)
	}
}

// gang reports on the gang of one mark.
func (p *page) gang(template path, pod *corev1.Pod, mark dialects.Mark) {
	where := template.child(metadata)
	defer p.needs(where, mark.Dialect.Name)
	var object map[string]any
	if mark.Dialect.Source != nil {
		source := mark.Dialect.Source(pod)
		object = p.run.find(source, p.text(at(metadata, "namespace")))
		if object == nil && source.Resource.Group == p.pods.describes {
			object = p.pods.object
		}
		if object == nil {
			p.note(stays, where, "dialect %s reads gang %s", mark.Dialect.Name, mark.Group)
			p.note(
				todo,
				where,
				"%s %s says how large the gang is, and is not in these files; it has to be in the cluster",
				source.Resource.GroupResource(),
				source.Name,
			)
			return
		}
	}
	group, err := mark.Describe(pod, object)
	if err != nil {
		p.note(
			todo,
			where,
			"dialect %s reads gang %s, but not its size: %s",
			mark.Dialect.Name,
			mark.Group,
			oneLine(err),
		)
		return
	}
	p.note(stays, where, "dialect %s reads gang %s, of at least %s", mark.Dialect.Name, mark.Group,
		count(group.Minimum, "pod"))
}

// needs records that a gang needs the row of a dialect, unless that is built in.
func (p *page) needs(where path, dialect string) {
	if _, isRow := p.run.rows[dialect]; !isRow {
		return
	}
	p.run.needed[dialect] = true
	p.note(todo, where, "add row %s of manifests/dialects/%s.yaml to %s of the chart's values; the last line has it",
		dialect, dialect, valuesPath)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// schedulers makes pods of other schedulers pods of Lockstep's.
func (p *page) schedulers() {
	for _, where := range p.parts.schedulers {
		p.scheduler(where)
	}
	for _, template := range p.parts.templates { // a mark on pods of the default scheduler, into which a gang plugin was built
		where := template.child("spec", "schedulerName")
		if _, marked := p.run.table.Read(p.pod(template, podsOf{})); marked && !p.has(where) {
			p.set(where, schedulerName)
			p.note(changed, where, "it is %s now; it was not set", schedulerName)
		}
	}
}

// scheduler changes one name of another scheduler.
func (p *page) scheduler(where path) {
	name := p.text(where)
	switch {
	case sourceOfScheduler(name) == "":
	case p.becomesTrainJob():
		p.remove(where)
		p.note(removed, where, "%s; Lockstep's controller writes the name of the scheduler", name)
	default:
		p.set(where, schedulerName)
		p.note(changed, where, "%s is %s now", name, schedulerName)
	}
}

// sourceOfScheduler returns the scheduler that a schedulerName is of; empty for any other name.
func sourceOfScheduler(name string) string {
	switch name {
	case "volcano":
		return volcanoSource
	case "kai-scheduler":
		return kaiSource
	case "scheduler-plugins-scheduler":
		return coschedulingSource
	case "yunikorn":
		return yunikornSource
	}
	return ""
}
