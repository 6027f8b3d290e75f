package movein

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// Labels of Ray objects that only batch schedulers read.
const (
	rayGangKey     = "ray.io/gang-scheduling-enabled"
	rayPriorityKey = "ray.io/priority-class-name"
)

// rayRule returns the rule for a label of Ray objects.
func rayRule(key string) rule {
	if key == rayPriorityKey {
		return prioritized
	}
	return dropped("the pods' label " + podGroupLabel + " makes them a gang")
}

// yunikornRule returns the rule for a label or annotation of YuniKorn.
func yunikornRule(key string) rule {
	switch key {
	case "yunikorn.apache.org/queue":
		return queued
	case "yunikorn.apache.org/app-id":
		return func(p *page, of mark) {
			if typeOf(p.object).group == groupRay {
				dropped("the pods' label "+podGroupLabel+" names the gang")(p, of)
				return
			}
			named(p, of)
		}
	case "yunikorn.apache.org/task-groups":
		return func(p *page, of mark) {
			if typeOf(p.object).group == groupRay {
				dropped("the PodGroup's minMember says how large the gang is")(p, of)
				return
			}
			named(p, of)
		}
	case "yunikorn.apache.org/task-group-name":
		return notRead("Lockstep counts the whole gang, and not its task groups")
	}
	return notRead("nothing in Lockstep reads it")
}

// ray changes a RayCluster, RayJob or RayService: KubeRay without a batch scheduler creates pods as their templates
// say, so the templates get the mark of the gang, and a PodGroup is written beside the object.
func (p *page) ray(of typed) {
	cluster, known := map[string]path{
		"RayCluster": at("spec"),
		"RayJob":     at("spec", "rayClusterSpec"),
		"RayService": at("spec", "rayClusterConfig"),
	}[of.kind]
	if !known {
		p.unsupported(of, "RayCluster, RayJob and RayService")
		return
	}
	gang := p.signOnTop()
	p.parts.templates = slices.DeleteFunc(
		p.parts.templates,
		func(template path) bool { return !template.within(cluster) },
	)
	p.keys()
	p.schedulers()
	p.note(
		todo,
		at("kind"),
		"run KubeRay without a batch scheduler (--batch-scheduler, chart value batchScheduler): it would overwrite "+
			"the pods' schedulerName",
	)
	if p.fields(cluster) == nil {
		p.note(stays, at("kind"), "the %s has no cluster of its own, so its pods are no gang", of.kind)
		return
	}
	if gang {
		p.rayGang(of, cluster)
	}
	if p.err == nil {
		p.gangs()
	}
}

// signOnTop reports whether the metadata of the object itself has a mark: KubeRay makes a gang of such objects.
func (p *page) signOnTop() bool {
	for _, sort := range []string{labels, annotations} {
		for key := range p.fields(at(metadata, sort)) {
			if sourceOfKey(key) != "" {
				return true
			}
		}
	}
	return false
}

// rayGang writes the mark on the templates of a cluster, and the PodGroup.
func (p *page) rayGang(of typed, cluster path) {
	name := p.text(at(metadata, "name"))
	if name == "" {
		p.refuse(at(metadata), "the "+of.kind+" has no name, by which its pods could name their PodGroup",
			"write metadata.name")
		return
	}
	members := 0
	for _, template := range p.parts.templates {
		if p.rayMember(template, name) == name {
			members++
		}
	}
	if members > 0 {
		p.rayPodGroup(of, name, p.rayPods(cluster))
	}
}

// rayMember makes the pods of a template members of a gang, and returns the name of the gang that they are members of.
func (p *page) rayMember(template path, gang string) string {
	scheduler := template.child("spec", "schedulerName")
	if had := p.text(scheduler); had != "" && had != schedulerName {
		p.note(changed, scheduler, "%s is %s now", had, schedulerName)
	}
	p.set(scheduler, schedulerName)
	on := template.child(metadata, labels, podGroupLabel)
	if p.text(on) == "" {
		p.set(on, gang)
		p.note(changed, template.child(metadata), "label %s: %s and schedulerName make these pods a gang of Lockstep's",
			podGroupLabel, gang)
	}
	return p.text(on)
}

// rayPodGroup writes the PodGroup of a Ray object, unless it is one of the documents.
func (p *page) rayPodGroup(of typed, name string, pods int) {
	namespace := p.text(at(metadata, "namespace"))
	group := map[string]any{
		"apiVersion": groupCoscheduling + "/v1alpha1", "kind": kindPodGroup,
		metadata: map[string]any{"name": name},
		"spec":   map[string]any{"minMember": int64(pods)},
	}
	if namespace != "" {
		group[metadata] = map[string]any{"name": name, "namespace": namespace}
	}
	p.pods = podsOf{object: group, describes: groupCoscheduling}
	resource := schema.GroupVersionResource{Group: groupCoscheduling, Resource: "podgroups"}
	if p.run.find(dialects.Source{Resource: resource, Name: name}, namespace) != nil {
		return
	}
	p.added = append(p.added, group)
	p.note(
		changed,
		at("kind"),
		"PodGroup %s follows it, and says how large the gang is; delete it with the %s. Its CRD, "+
			"podgroups.%s, has to be installed",
		name,
		of.kind,
		groupCoscheduling,
	)
	if of.kind == "RayService" {
		p.note(
			todo,
			at("kind"),
			"while the RayService replaces its cluster, the new pods join the same gang, and start one by one",
		)
	}
}

// rayPods counts the pods that a cluster starts with: a head, and the workers that are desired, or with the autoscaler
// the fewest allowed.
func (p *page) rayPods(cluster path) int {
	pods := 1
	scales := p.flag(cluster.child("enableInTreeAutoscaling"))
	for i := range p.items(cluster.child("workerGroupSpecs")) {
		group := cluster.child("workerGroupSpecs", i)
		if p.flag(group.child("suspend")) {
			continue
		}
		least := p.number(group.child("minReplicas"), 0)
		wanted := least
		if !scales {
			wanted = min(
				max(least, p.number(group.child("replicas"), least)),
				p.number(group.child("maxReplicas"), 1<<24),
			)
		}
		pods += wanted * p.number(group.child("numOfHosts"), 1)
	}
	return pods
}
