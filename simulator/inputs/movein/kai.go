package movein

import (
	"slices"
	"strconv"

	"github.com/lockstep-project/lockstep/topology"
)

// Keys of KAI without a prefix.
const (
	kaiPodGroupKey  = "pod-group-name"
	kaiFractionKey  = "gpu-fraction"
	kaiGPUMemoryKey = "gpu-memory"
	// kaiPriorityLabel is KAI's in objects that have another mark of KAI.
	kaiPriorityLabel = "priorityClassName"
)

// isBareKAI reports whether KAI reads a key that has no prefix.
func isBareKAI(key string) bool {
	switch key {
	case kaiPodGroupKey, kaiFractionKey, kaiGPUMemoryKey,
		"gpu-fraction-num-devices", "gpu-fraction-container-name", "runai-gpu-group":
		return true
	}
	return false
}

// kaiRule returns the rule for a label or annotation of KAI.
func kaiRule(key string) rule {
	switch key {
	case kaiPodGroupKey:
		return named
	case kaiFractionKey, kaiGPUMemoryKey:
		return wholeGPUsOnly
	case "kai.scheduler/topology-required-placement":
		return becomes(topology.AnnotationRequiredTopology)
	case "kai.scheduler/topology-preferred-placement":
		return becomes(topology.AnnotationPreferredTopology)
	case "kai.scheduler/segment-size":
		return kaiSegment
	case "kai.scheduler/segment-topology-required-placement":
		return becomes(topology.AnnotationSegmentTopology)
	case "kai.scheduler/segment-topology-preferred-placement":
		return dropped(
			"Lockstep never splits a segment; to require the level, write " + topology.AnnotationSegmentTopology,
		)
	case "kai.scheduler/topology":
		return dropped("Lockstep reads one topology, from the labels of nodes")
	case "kai.scheduler/queue":
		return queued
	case "kai.scheduler/batch-min-member", "kai.scheduler/min-member":
		return gangSize
	case "kai.scheduler/skip-podgrouper":
		return dropped("KAI's pod-grouper passes over pods of other schedulers")
	case "kai.scheduler/subgroup-name":
		return notRead("Lockstep counts the whole gang, and no subgroups; of ranks in equal groups write " +
			topology.AnnotationSegmentSize)
	case "kai.scheduler/node-pool":
		return selectNodes
	case "kai.scheduler/preemptibility":
		return notRead(
			"Lockstep decides by PriorityClass: non-preemptible is a class with annotation lockstep.dev/preemptible: \"false\"",
		)
	}
	return notRead("nothing in Lockstep reads it")
}

// kaiSegment is the rule for the size of segments, which without a required level would prevent the gang's start.
func kaiSegment(p *page, of mark) {
	for _, level := range []string{"kai.scheduler/segment-topology-required-placement", topology.AnnotationSegmentTopology} {
		if p.text(of.meta.child(annotations, level)) != "" {
			becomes(topology.AnnotationSegmentSize)(p, of)
			return
		}
	}
	dropped(
		"no level is required of its segments; to require one, write "+topology.AnnotationSegmentSize+": \""+of.value+
			"\" and "+topology.AnnotationSegmentTopology,
	)(
		p,
		of,
	)
}

// wholeGPUsOnly refuses pods that share GPUs: without KAI they would run without any.
func wholeGPUsOnly(p *page, of mark) {
	p.refuse(of.where(), "annotation "+of.key+" asks for a part of a GPU, which Lockstep does not place",
		"leave the object to KAI and take it out, or ask for whole GPUs")
}

// selectNodes is the rule for KAI's node pools, which are labels of nodes too.
func selectNodes(p *page, of mark) {
	if len(p.parts.templates) == 0 {
		notRead("write it as nodeSelector of the pods")(p, of)
		return
	}
	for _, template := range p.parts.templates {
		if template.within(of.meta.owner()) {
			on := template.child("spec", "nodeSelector", of.key)
			p.set(on, of.value)
			p.note(changed, of.where(), "it is %s now", on)
		}
	}
	p.remove(of.where())
}

// kai changes objects of KAI's own kinds.
func (p *page) kai() {
	switch of := typeOf(p.object); of {
	case typed{groupKAI, "v2alpha2", kindPodGroup}:
		p.kaiPodGroup()
	case typed{groupKAI, "v2", kindQueue}:
		p.queueObject("KAI")
	case typed{groupKAITopology, "v1alpha1", "Topology"}:
		p.note(unread, at("spec"), "Lockstep reads levels from the labels of nodes; lockstep doctor lists them")
	default:
		p.unsupported(of, "PodGroup (v2alpha2) and Queue (v2) of "+groupKAI, "Topology of "+groupKAITopology)
	}
}

// queueObject reports on a queue, field by field.
func (p *page) queueObject(source string) {
	p.note(unread, at("kind"), "Lockstep has no queues: %s's can be a ClusterQueue and a LocalQueue of Kueue", source)
	p.unreadFields(at("spec"), nil, "Kueue has quotas and weights in its ClusterQueue")
}

// unreadFields reports on all fields of a mapping but some.
func (p *page) unreadFields(where path, known []string, text string) {
	for _, key := range sortedKeys(p.fields(where)) {
		if !slices.Contains(known, key) {
			p.note(unread, where.child(key), "%s", text)
		}
	}
}

func (p *page) kaiPodGroup() {
	spec := at("spec")
	p.keys()
	p.constraint(spec.child("topologyConstraint"))
	p.podGroupSize("kai", p.subgroups(spec))
	p.podGroupQueue(spec.child("queue"))
	p.podGroupPriority(spec.child("priorityClassName"))
	if value := p.text(spec.child("preemptibility")); value != "" {
		p.note(
			unread,
			spec.child("preemptibility"),
			"Lockstep decides by the PriorityClass of the pods: non-preemptible is a class "+
				"with annotation lockstep.dev/preemptible: \"false\"",
		)
	}
	p.unreadFields(spec, []string{
		"minMember", "topologyConstraint", "minSubGroup", "subGroups", "queue", "priorityClassName", "preemptibility",
	}, "nothing in Lockstep reads it")
}

// constraint turns KAI's topology constraint of a whole PodGroup into annotations of the PodGroup.
func (p *page) constraint(where path) {
	const required, preferred, name = "requiredTopologyLevel", "preferredTopologyLevel", "topology"
	p.level(where.child(required), topology.AnnotationRequiredTopology)
	p.level(where.child(preferred), topology.AnnotationPreferredTopology)
	if p.text(where.child(name)) != "" {
		p.remove(where.child(name))
		p.note(removed, where.child(name), "Lockstep reads one topology, from the labels of nodes")
	}
	p.unreadFields(where, nil, "nothing in Lockstep reads it")
	if p.has(where) && len(p.fields(where)) == 0 {
		p.remove(where)
	}
}

// level turns a field of a PodGroup that names a level into an annotation of the PodGroup.
func (p *page) level(where path, annotation string) {
	if level := p.text(where); level != "" {
		p.remove(where)
		p.wish(where, nil, annotation, level)
	}
}

// subgroups reports on the subgroups of a PodGroup, and returns the number of pods that they need together.
func (p *page) subgroups(spec path) int {
	if p.has(spec.child("minSubGroup")) {
		p.note(unread, spec.child("minSubGroup"), "Lockstep counts the whole gang, and no subgroups")
	}
	sum := 0
	for i := range p.items(spec.child("subGroups")) {
		group := spec.child("subGroups", i)
		sum += p.number(group.child("minMember"), 0)
		p.note(unread, group, "Lockstep counts the whole gang, and no subgroups: not that %s of %q start together%s",
			strconv.Itoa(p.number(group.child("minMember"), 0)), p.text(group.child("name")), p.placed(group))
	}
	return sum
}

// placed reports requests of a subgroup that are not converted.
func (p *page) placed(group path) string {
	if p.has(group.child("topologyConstraint")) {
		return ", nor its topologyConstraint; of ranks in equal groups write " + topology.AnnotationSegmentSize + " and " +
			topology.AnnotationSegmentTopology
	}
	return ""
}
