package movein

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-project/lockstep/topology"
)

// mark is one label or annotation of another scheduler, or one that another controller writes for it.
type mark struct {
	// meta is the path of the metadata, sort is labels or annotations.
	meta       path
	sort       string
	key, value string
}

func (m mark) where() path { return m.meta.child(m.sort, m.key) }

// rule converts a mark.
type rule func(p *page, of mark)

// Names of the sources of marks.
const (
	volcanoSource      = "Volcano"
	kaiSource          = "KAI"
	coschedulingSource = "scheduler-plugins"
	yunikornSource     = "YuniKorn"
	raySource          = "KubeRay"
)

// sourceOfKey returns the scheduler that reads a key; empty for any other key.
func sourceOfKey(key string) string {
	prefix, _, _ := strings.Cut(key, "/")
	switch {
	case in(prefix, "volcano.sh"), key == groupNameKey:
		return volcanoSource
	case in(prefix, "kai.scheduler"), in(prefix, "run.ai"), prefix == "runai", isBareKAI(key):
		return kaiSource
	case in(prefix, groupCoscheduling):
		return coschedulingSource
	case in(prefix, "yunikorn.apache.org"):
		return yunikornSource
	case key == rayGangKey, key == rayPriorityKey:
		return raySource
	}
	return ""
}

// in reports whether the prefix of a key is a domain or a subdomain of it.
func in(prefix, domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }

// ruleOf returns the rule for a mark in a document with marks of some sources; nil for keys that no other scheduler
// reads.
func ruleOf(of mark, sources map[string]bool) rule {
	switch sourceOfKey(of.key) {
	case volcanoSource:
		return volcanoRule(of.key)
	case kaiSource:
		return kaiRule(of.key)
	case coschedulingSource:
		return coschedulingRule(of.key)
	case yunikornSource:
		return yunikornRule(of.key)
	case raySource:
		return rayRule(of.key)
	}
	if of.key == kaiPriorityLabel && of.sort == labels && sources[kaiSource] {
		return prioritized
	}
	return nil
}

// keys applies the rules to all labels and annotations of the document.
func (p *page) keys() {
	sources := p.sources()
	for _, meta := range p.parts.metadata {
		for _, sort := range []string{annotations, labels} {
			for _, key := range slices.Sorted(maps.Keys(p.fields(meta.child(sort)))) {
				of := mark{meta, sort, key, p.text(meta.child(sort, key))}
				if apply := ruleOf(of, sources); apply != nil && p.has(of.where()) {
					apply(p, of)
				}
			}
		}
	}
}

// notRead is the rule for marks that stay and do nothing.
func notRead(text string) rule {
	return func(p *page, of mark) { p.note(unread, of.where(), "%s", text) }
}

// dropped is the rule for marks that are removed.
func dropped(text string) rule {
	return func(p *page, of mark) {
		p.remove(of.where())
		p.note(removed, of.where(), "%s", text)
	}
}

// named is the rule for marks that name the pod's gang. On pods, gangs names the dialect that reads them.
func named(p *page, of mark) {
	if p.becomesTrainJob() {
		dropped("the TrainJob's own PodGroup makes its pods a gang")(p, of)
		return
	}
	if slices.ContainsFunc(p.parts.templates, func(template path) bool {
		return slices.Equal(template, of.meta.owner())
	}) {
		return
	}
	p.note(unread, of.where(), "Lockstep reads it on pods; write it in the metadata of their template")
}

// becomes is the rule for marks that Lockstep has an annotation for.
func becomes(annotation string) rule {
	return func(p *page, of mark) {
		p.remove(of.where())
		p.wish(of.where(), of.meta.owner(), annotation, of.value)
	}
}

// targets are the pod templates at or below an object; the object itself if there are none.
func (p *page) targets(object path) []path {
	var found []path
	for _, template := range p.parts.templates {
		if template.within(object) {
			found = append(found, template)
		}
	}
	if len(found) == 0 {
		return []path{object}
	}
	return found
}

// wish writes an annotation on the pods of an object, unless they have it: marks of templates are read before those of
// the object.
func (p *page) wish(where, object path, annotation, value string) {
	var written []string
	for _, target := range p.targets(object) {
		on := target.child(metadata, annotations, annotation)
		switch had := p.text(on); had {
		case value:
			p.note(removed, where, "%s says the same", on)
		case "":
			p.set(on, value)
			written = append(written, target.child(metadata).String())
		default:
			p.note(removed, where, "%s is %s, and counts instead", on, had)
		}
	}
	if len(written) > 0 {
		p.note(changed, where, "it is annotation %s: %s on %s now", annotation, value, strings.Join(written, ", "))
	}
}

// kueueLabel is the label by which Kueue takes an object into a queue.
const kueueLabel = "kueue.x-k8s.io/queue-name"

// queued is the rule for marks that name a queue.
func queued(p *page, of mark) {
	if of.value == "" || len(validation.IsValidLabelValue(of.value)) > 0 || !p.kueueTakes() {
		p.note(
			unread,
			of.where(),
			"Lockstep has no queues, and a label is not enough for Kueue to queue this %s",
			p.text(at("kind")),
		)
		return
	}
	on := at(metadata, labels, kueueLabel)
	switch had := p.text(on); had {
	case "":
		p.set(on, of.value)
		p.note(
			changed,
			of.where(),
			"it is label %s: %s on metadata now; Kueue needs a LocalQueue of this name in the namespace, "+
				"and without Kueue the label does nothing",
			kueueLabel,
			of.value,
		)
	case of.value:
		p.note(removed, of.where(), "%s says the same", on)
	default:
		p.note(removed, of.where(), "%s is %s, and counts instead", on, had)
	}
	p.remove(of.where())
}

// kueueTakes reports whether Kueue has an integration for the kind that needs no more than the label.
func (p *page) kueueTakes() bool {
	switch of := typeOf(p.object); of.group {
	case "batch":
		return of.kind == "Job"
	case "apps":
		return of.kind == "Deployment" || of.kind == "StatefulSet"
	case "jobset.x-k8s.io", "leaderworkerset.x-k8s.io", groupKubeflow, groupRay:
		return true
	case groupTrainer:
		return of.kind == "TrainJob"
	}
	return false
}

// prioritized is the rule for marks that name a PriorityClass.
func prioritized(p *page, of mark) {
	p.priority(of.where(), of.meta.owner(), of.value, removed)
	if of.value != "" && len(p.parts.templates) > 0 {
		p.remove(of.where())
	}
}

// priority gives the pods of an object a PriorityClass, unless they have one: a gang has the priority of its pods. left
// is the verdict where they have another.
func (p *page) priority(where, object path, class string, left verdict) {
	var written []string
	for _, template := range p.parts.templates {
		if !template.within(object) {
			continue
		}
		switch on := template.child("spec", "priorityClassName"); p.text(on) {
		case class:
			p.note(stays, where, "%s says the same", on)
		case "":
			p.set(on, class)
			written = append(written, on.String())
		default:
			p.note(left, where, "%s is %s, and counts instead", on, p.text(on))
		}
	}
	if len(written) > 0 {
		p.note(changed, where, "it is %s now", strings.Join(written, ", "))
	} else if len(p.parts.templates) == 0 {
		p.note(unread, where, "a gang has the priority of its pods; write priorityClassName there")
	}
}

// gangSize is the rule for marks on objects with the number of pods that start together.
func gangSize(p *page, of mark) {
	job := typeOf(p.object)
	if p.becomesTrainJob() {
		dropped("all pods of a TrainJob that start at once are its gang")(p, of)
		return
	}
	switch job.group + "/" + job.kind {
	case "batch/Job":
		p.jobGang(of)
	case "batch/CronJob":
		p.note(
			todo,
			of.where(),
			"Lockstep does not read it: write annotation %s: \"on\" on the pods of its Jobs to make each Job a gang",
			topology.AnnotationGang,
		)
	case "jobset.x-k8s.io/JobSet":
		dropped(
			"all pods that the JobSet starts at once are its gang; annotation "+topology.AnnotationGang+": \"off\" on the pods makes "+
				"it none",
		)(
			p,
			of,
		)
	default:
		p.note(
			todo,
			of.where(),
			"Lockstep does not read it: write label %s on the pods, and a PodGroup with minMember %s",
			podGroupLabel,
			of.value,
		)
	}
}

// jobGang makes a Job a gang, of all pods that it runs at once.
func (p *page) jobGang(of mark) {
	if of.value == "1" {
		dropped("1 is no gang, and needs no mark")(p, of)
		return
	}
	p.remove(of.where())
	p.set(at("spec", "template", metadata, annotations, topology.AnnotationGang), "on")
	pods := p.number(at("spec", "parallelism"), 1)
	if strconv.Itoa(pods) == of.value {
		p.note(
			changed,
			of.where(),
			"it is annotation %s: \"on\" on spec.template.metadata now",
			topology.AnnotationGang,
		)
		return
	}
	p.note(
		changed,
		of.where(),
		"annotation %s: \"on\" on spec.template.metadata makes all %s a gang that run at once; for a gang of %s, "+
			"write label %s there and a PodGroup instead",
		topology.AnnotationGang,
		count(pods, "pod"),
		of.value,
		podGroupLabel,
	)
}
