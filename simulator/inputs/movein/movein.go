package movein

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/controller/migrate"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// Options hold facts that the manifests do not state.
type Options struct {
	// Levels are names of levels, or keys of node labels, by the tiers of Volcano's HyperNodes: their number or their
	// name.
	Levels map[string]string
	// KeepMPIJobs leaves MPIJobs of v2beta1 to the MPI operator. Without it they pass unchanged, and package migrate
	// makes TrainJobs of them.
	KeepMPIJobs bool
}

// Result holds the objects to write.
type Result struct {
	// Documents are the converted input, each document followed by the objects that it needs. A document without a sign
	// of another scheduler is the input's own.
	Documents []migrate.Document
	// Notes are in the order of the documents, those of one document by line.
	Notes []migrate.Note
	// Rows are the dialects that the chart's values need for the gangs of these documents, by name.
	Rows []dialects.Row
}

// Documents changes the objects of one run. The error is a migrate.InputError: then there is no result at all.
func Documents(documents []migrate.Document, options Options) (Result, error) {
	r, err := newRun(documents, options)
	if err != nil {
		return Result{}, err
	}
	var result Result
	for _, document := range documents {
		p := newPage(r, document)
		if !p.answer() {
			result.Documents = append(result.Documents, document)
			continue
		}
		if p.err != nil {
			return Result{}, p.err
		}
		slices.SortStableFunc(p.notes, func(a, b migrate.Note) int { return cmp.Compare(a.Line, b.Line) })
		result.Notes = append(result.Notes, p.notes...)
		for _, content := range append([]map[string]any{p.object}, p.added...) {
			result.Documents = append(result.Documents, migrate.Document{
				File: document.File, Content: content, Line: document.Line, Keep: p.keep,
			})
		}
	}
	result.Rows = r.neededRows()
	return result, nil
}

// API groups and kinds that are named more than once.
const (
	groupKubeflow     = "kubeflow.org"
	groupTrainer      = "trainer.kubeflow.org"
	groupRay          = "ray.io"
	groupVolcanoBatch = "batch.volcano.sh"
	groupVolcano      = "scheduling.volcano.sh"
	groupVolcanoNodes = "topology.volcano.sh"
	groupKAI          = "scheduling.run.ai"
	groupKAITopology  = "kai.scheduler"
	groupCoscheduling = "scheduling.x-k8s.io"

	kindPodGroup = "PodGroup"
	kindQueue    = "Queue"
	kindMPIJob   = "MPIJob"
)

// typed is the type of an object.
type typed struct{ group, version, kind string }

func typeOf(content map[string]any) typed {
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return typed{}
	}
	return typed{gv.Group, gv.Version, kind}
}

// answer changes the document; false if nothing in it is of another scheduler.
func (p *page) answer() bool {
	of := typeOf(p.object)
	source := sourceOf(of, p.run.options)
	if source == nil && len(p.sources()) == 0 {
		return false
	}
	p.metadataAreTexts()
	if source == nil {
		source = (*page).workload
	}
	if p.err == nil {
		source(p)
	}
	return true
}

// sourceOf returns the reader of objects of another scheduler's kind; nil for any other kind.
func sourceOf(of typed, options Options) func(*page) {
	switch of.group {
	case groupVolcanoBatch, groupVolcano, groupVolcanoNodes:
		return (*page).volcano
	case groupKAI, groupKAITopology:
		return (*page).kai
	case groupCoscheduling:
		return (*page).coscheduling
	case groupKubeflow:
		if of.kind != kindMPIJob || of.version != "v2beta1" {
			return nil
		}
		if options.KeepMPIJobs {
			return (*page).mpiJob
		}
		return (*page).mpiTrainJob
	}
	return nil
}

// sources returns the schedulers whose labels, annotations or name the document has. Its values may be of any type.
func (p *page) sources() map[string]bool {
	found := map[string]bool{}
	for _, where := range p.parts.metadata {
		for _, sort := range []string{labels, annotations} {
			fields, _ := valueAt(p.from.Content, where.child(sort)).(map[string]any)
			for key := range fields {
				found[sourceOfKey(key)] = true
			}
		}
	}
	for _, where := range p.parts.schedulers {
		name, _ := valueAt(p.from.Content, where).(string)
		found[sourceOfScheduler(name)] = true
	}
	delete(found, "")
	return found
}

// valueAt is the value at a path of keys and indexes that exist.
func valueAt(root any, where path) any {
	for _, step := range where {
		switch step := step.(type) {
		case string:
			fields, _ := root.(map[string]any)
			root = fields[step]
		case int:
			items, _ := root.([]any)
			root = items[step]
		}
	}
	return root
}

// workload changes an object of any kind that makes pods.
func (p *page) workload() {
	of := typeOf(p.object)
	if of.group == groupRay {
		p.ray(of)
		return
	}
	p.pods = controllerOf(of, p.name(), p.object)
	p.keys()
	p.schedulers()
	if p.becomesTrainJob() {
		p.podGroupPolicy(at("spec", "podGroupPolicy"))
		return
	}
	p.gangs()
}

// becomesTrainJob reports whether the document is a TrainJob or a runtime, or package migrate makes a TrainJob of it:
// Lockstep's controller decides about its gang.
func (p *page) becomesTrainJob() bool {
	of := typeOf(p.object)
	return of.group == groupTrainer || of.group == groupKubeflow && !p.keep
}

// podGroupPolicy removes the policy by which the pods of a runtime's TrainJobs are a gang of another scheduler.
func (p *page) podGroupPolicy(where path) {
	if p.fields(where) == nil {
		return
	}
	p.networkTopology(where.child("volcano", "networkTopology"), nil)
	p.remove(where)
	p.note(removed, where, "Lockstep's controller creates the PodGroup of a TrainJob")
}

// unsupported refuses a kind of another scheduler.
func (p *page) unsupported(of typed, supported ...string) {
	p.refuse(at("kind"), "kind "+of.kind+" of "+of.group+"/"+of.version+" cannot be migrated",
		"take it out; supported are "+strings.Join(supported, ", "))
}
