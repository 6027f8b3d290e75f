package movein

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
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

// ray changes a RayCluster, RayJob or RayService: KubeRay without a batch scheduler creates pods as their templates say, so the templates get
// the mark of the gang, and a PodGroup is written beside the object.
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
		p.refuse(
			at(metadata),
			"the "+of.kind+" has no name, by which its pods could name their PodGroup",
			"write metadata.name",
		)
		return
	}
	for _, template := range p.parts.templates {
		p.set(template.child("spec", "schedulerName"), schedulerName)
		if on := template.child(metadata, labels, podGroupLabel); p.text(on) == "" {
			p.set(on, name)
			p.note(
				changed,
				template.child(metadata),
				"label %s: %s makes these pods members of the gang",
				podGroupLabel,
				name,
			)
		}
	}
	group := map[string]any{
		"apiVersion": groupCoscheduling + "/v1alpha1", "kind": kindPodGroup,
		metadata: map[string]any{"name": name},
		"spec":   map[string]any{"minMember": int64(p.rayPods(cluster))},
	}
	if namespace := p.text(at(metadata, "namespace")); namespace != "" {
		group[metadata] = map[string]any{"name": name, "namespace": namespace}
	}
	p.pods = podsOf{write: func(*corev1.Pod) {}, object: group, describes: groupCoscheduling}
	if p.run.find(dialects.Source{
		Resource: schema.GroupVersionResource{Group: groupCoscheduling, Resource: "podgroups"}, Name: name,
	}, p.text(at(metadata, "namespace"))) != nil {
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

// rayPods counts the pods that a cluster starts with: a head, and the workers that are desired, or with the autoscaler the fewest allowed.
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
