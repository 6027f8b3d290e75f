package movein

import (
	"strconv"

	"github.com/lockstep-project/lockstep/topology"
)

// Keys of Volcano.
const (
	groupNameKey    = "scheduling.k8s.io/group-name"
	volcanoModeKey  = "volcano.sh/network-topology-mode"
	volcanoTierKey  = "volcano.sh/network-topology-highest-tier"
	volcanoTierKey2 = "volcano.sh/network-topology-highest-tier-allowed"
)

// volcanoRule returns the rule for a label or annotation of Volcano.
func volcanoRule(key string) rule {
	switch key {
	case groupNameKey, "scheduling.volcano.sh/group-name":
		return named
	case "scheduling.volcano.sh/queue-name", "volcano.sh/queue-name":
		return queued
	case "scheduling.volcano.sh/group-min-member":
		return gangSize
	case volcanoModeKey, volcanoTierKey, volcanoTierKey2:
		return tiered
	case "volcano.sh/preemptable":
		return notRead(
			"Lockstep decides by PriorityClass: false is a class with annotation lockstep.dev/preemptible: \"false\"",
		)
	case "volcano.sh/numa-topology-policy":
		return notRead("the kubelet decides by its topology manager policy")
	case "volcano.sh/sla-waiting-time":
		return notRead(
			"Lockstep reserves room for the first of its queue that has none; PriorityClasses decide who is first",
		)
	case "scheduling.volcano.sh/group-min-resources":
		return notRead("Lockstep plans the whole gang, and needs no sum")
	}
	return notRead("nothing in Lockstep reads it")
}

// tiered is the rule for labels and annotations that state a network topology; the first of them answers for all.
func tiered(p *page, of mark) {
	siblings := of.meta.child(of.sort)
	wanted := tier{mode: p.text(siblings.child(volcanoModeKey)), object: of.meta.owner(), where: of.where()}
	for _, key := range []string{volcanoTierKey, volcanoTierKey2} {
		if value := p.text(siblings.child(key)); value != "" {
			wanted.allowed, wanted.where = value, siblings.child(key)
		}
	}
	if !p.tier(wanted) {
		for _, key := range []string{volcanoModeKey, volcanoTierKey, volcanoTierKey2} {
			if key != of.key && p.has(siblings.child(key)) {
				p.note(unread, siblings.child(key), "as %s", of.key)
			}
		}
		return
	}
	for _, key := range []string{volcanoModeKey, volcanoTierKey, volcanoTierKey2} {
		if where := siblings.child(key); p.has(where) {
			p.remove(where)
			if where.String() != wanted.where.String() {
				p.note(removed, where, "the annotation says it too")
			}
		}
	}
}

// tier is a network topology of Volcano's.
type tier struct {
	// mode is hard (the default) or soft; allowed is the number or the name of the highest tier.
	mode, allowed string
	// where is the path that a note is about, object that of the pods' owner.
	where, object path
	// annotations for a hard and for a soft mode; empty for those of the whole gang.
	hard, soft string
}

// tier writes the annotation for a network topology; false if it is unchanged.
func (p *page) tier(of tier) bool {
	if of.hard == "" {
		of.hard, of.soft = topology.AnnotationRequiredTopology, topology.AnnotationPreferredTopology
	}
	if of.mode != "" && of.mode != "hard" && of.mode != "soft" {
		p.refuse(
			of.where,
			"mode "+strconv.Quote(of.mode)+" of a network topology is none of Volcano's",
			"write hard or soft",
		)
		return false
	}
	if of.allowed == "" {
		p.note(unread, of.where, "no tier is named, so nothing is required; to prefer a level, write %s",
			topology.AnnotationPreferredTopology)
		return false
	}
	level, known := p.run.options.Levels[of.allowed]
	_, err := strconv.Atoi(of.allowed)
	if !known && err != nil { // the name of a tier may be the name of a level
		level, known = of.allowed, true
	}
	annotation := of.hard
	if of.mode == "soft" {
		annotation = of.soft
	}
	switch {
	case !known && of.mode == "soft":
		p.note(unread, of.where, "the level of tier %s is not known; --tier %s=LEVEL names it", of.allowed, of.allowed)
		return false
	case !known:
		p.refuse(of.where, "the gang must not cross tier "+of.allowed+", whose level is not known",
			"add --tier "+of.allowed+"=LEVEL, a level of lockstep doctor or the key of a node label")
		return false
	case annotation == "":
		p.note(unread, of.where, "segments of Lockstep's are never split; write %s to require the level", of.hard)
		return false
	}
	p.wish(of.where, of.object, annotation, level)
	return true
}

// volcano changes objects of Volcano's own kinds.
func (p *page) volcano() {
	switch of := typeOf(p.object); of {
	case typed{groupVolcanoBatch, "v1alpha1", "Job"}:
		p.volcanoJob()
	case typed{groupVolcano, "v1beta1", kindPodGroup}:
		p.volcanoPodGroup()
	case typed{groupVolcano, "v1beta1", kindQueue}:
		p.queueObject("Volcano")
	case typed{groupVolcanoNodes, "v1alpha1", "HyperNode"}:
		p.note(unread, at("spec"), "Lockstep reads levels from the labels of nodes; lockstep doctor lists them")
	default:
		p.unsupported(of, "Job of "+groupVolcanoBatch+"/v1alpha1", "PodGroup and Queue of "+groupVolcano+"/v1beta1",
			"HyperNode of "+groupVolcanoNodes+"/v1alpha1")
	}
}

func (p *page) volcanoPodGroup() {
	spec := at("spec")
	p.keys()
	p.networkTopology(spec.child("networkTopology"), nil)
	p.podGroupSize("volcano", 0)
	p.podGroupQueue(spec.child("queue"))
	p.podGroupPriority(spec.child("priorityClassName"))
	if p.has(spec.child("minTaskMember")) {
		p.note(unread, spec.child("minTaskMember"), "Lockstep counts the whole gang, and not its tasks")
	}
	if p.has(spec.child("minResources")) {
		p.note(unread, spec.child("minResources"), "Lockstep plans the whole gang, and needs no sum")
	}
	for i := range p.items(spec.child("subGroupPolicy")) {
		p.note(
			unread,
			spec.child("subGroupPolicy", i),
			"Lockstep counts no subgroups; of ranks in equal groups write %s and %s",
			topology.AnnotationSegmentSize,
			topology.AnnotationSegmentTopology,
		)
	}
	p.unreadFields(spec, []string{
		"minMember", "queue", "priorityClassName", "networkTopology", "minTaskMember", "minResources", "subGroupPolicy",
	}, "nothing in Lockstep reads it")
}

// networkTopology turns the field of a Job or PodGroup into an annotation of the pods of an object, or of the object.
func (p *page) networkTopology(where, object path) {
	if p.fields(where) != nil && p.tier(p.tierOf(where, object)) {
		p.removeTier(where)
	}
}

// The fields of a network topology.
const (
	tierMode   = "mode"
	tierNumber = "highestTierAllowed"
	tierName   = "highestTierName"
)

// tierOf reads a field networkTopology.
func (p *page) tierOf(where, object path) tier {
	of := tier{
		mode:    p.text(where.child(tierMode)),
		allowed: p.text(where.child(tierName)),
		where:   where,
		object:  object,
	}
	if number := where.child(tierNumber); of.allowed == "" && p.has(number) {
		of.allowed = strconv.Itoa(p.number(number, 0))
	}
	p.unreadFields(where, []string{tierMode, tierNumber, tierName}, "nothing in Lockstep reads it")
	return of
}

// removeTier removes a field networkTopology, except unknown fields in it.
func (p *page) removeTier(where path) {
	for _, field := range []string{tierMode, tierNumber, tierName} {
		p.remove(where.child(field))
	}
	if len(p.fields(where)) == 0 {
		p.remove(where)
	}
}
