package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Document is one Kubernetes object as it was read, and its place.
type Document struct {
	// File is the name under which the user knows the file.
	File string
	// Content holds the object's fields: maps, slices, strings, booleans, int64 and float64. It is never changed.
	Content map[string]any
	// Line returns the line, counted from 1, of the part at a path of keys (string) and indexes (int), or of the
	// nearest part that exists.
	Line func(path ...any) int
	// Keep leaves the object to the controller that has it: it passes unchanged.
	Keep bool
}

// Note reports the change of a field, and its replacement.
type Note struct {
	File string
	Line int
	// Field is the field's path, such as spec.runPolicy.cleanPodPolicy.
	Field string
	Text  string
}

// String is the note on one line.
func (n Note) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.Field, strings.Join(strings.Fields(n.Text), " "))
}

// InputError is an object that cannot be migrated. Nothing of its run should be used.
type InputError struct {
	File string
	Line int
	// What is the fault, Mend the remedy.
	What, Mend string
}

// Error is the error on one line.
func (e *InputError) Error() string {
	return fmt.Sprintf("%s:%d: %s; %s", e.File, e.Line, e.What, e.Mend)
}

// Result holds the objects to write.
type Result struct {
	// Objects are in the order of their documents; a runtime stands before its job. Objects of kinds that need no
	// migration are the documents' own content.
	Objects []map[string]any
	// Notes are sorted by document and line.
	Notes []Note
}

// Documents migrates the objects of one run. The error is an InputError: then there is no result at all.
func Documents(documents []Document) (Result, error) {
	var result Result
	first := map[string]*page{}
	for _, document := range documents {
		p := &page{from: document}
		objects, err := p.migrate()
		if err != nil {
			return Result{}, err
		}
		for _, object := range objects {
			name := identity(object)
			if name == "" {
				continue
			}
			if other, taken := first[name]; taken {
				place := fmt.Sprintf("%s:%d", other.from.File, other.from.Line())
				return Result{}, p.bad(
					nil,
					name+" would be there twice, first from "+place,
					"rename or remove one of them",
				)
			}
			first[name] = p
		}
		slices.SortStableFunc(p.notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
		result.Objects = append(result.Objects, objects...)
		result.Notes = append(result.Notes, p.notes...)
	}
	return result, nil
}

// The group of the old operators' jobs, and the kinds of it that can be migrated.
const (
	oldGroup       = "kubeflow.org"
	supportedKinds = "PyTorchJob, JAXJob, XGBoostJob (v1) and MPIJob (v1, v2beta1)"
)

// migrate returns the objects that replace the document.
func (p *page) migrate() ([]map[string]any, error) {
	if p.from.Keep {
		return []map[string]any{p.from.Content}, nil
	}
	version, _ := p.from.Content["apiVersion"].(string)
	kind, _ := p.from.Content["kind"].(string)
	if version == "" || kind == "" {
		return nil, p.bad(nil, "the object has no apiVersion or no kind", "add both")
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, p.bad(at("apiVersion"), "apiVersion is not valid: "+err.Error(), "write group/version")
	}
	switch gv.Group {
	case trainerv1alpha1.Group:
		return p.migrateTrainer(gv.Version, kind)
	case oldGroup:
		return p.migrateOld(gv.Version, kind)
	}
	return []map[string]any{p.from.Content}, nil
}

func (p *page) migrateTrainer(version, kind string) ([]map[string]any, error) {
	if version != trainerv1alpha1.Version && version != "v2alpha1" {
		return nil, p.bad(
			at("apiVersion"),
			trainerv1alpha1.Group+" has no version "+version,
			"use v1alpha1 or v2alpha1",
		)
	}
	switch kind {
	case trainerv1alpha1.TrainJobKind:
		return p.trainJob()
	case trainerv1alpha1.TrainingRuntimeKind:
		return p.runtime(&trainerv1alpha1.TrainingRuntime{})
	case trainerv1alpha1.ClusterTrainingRuntimeKind:
		return p.runtime(&trainerv1alpha1.ClusterTrainingRuntime{})
	}
	return nil, p.bad(at("kind"), "kind "+kind+" of "+trainerv1alpha1.Group+" cannot be migrated",
		"take it out; supported are TrainJob, TrainingRuntime and ClusterTrainingRuntime")
}

func (p *page) migrateOld(version, kind string) ([]map[string]any, error) {
	switch version + " " + kind {
	case "v1 PyTorchJob":
		return p.pyTorchJob()
	case "v1 JAXJob":
		return p.jaxJob()
	case "v1 XGBoostJob":
		return p.xgboostJob()
	case "v1 MPIJob", "v2beta1 MPIJob":
		return p.mpiJob(version)
	}
	return nil, p.bad(at("kind"), "kind "+kind+" of "+oldGroup+"/"+version+" cannot be migrated",
		"take it out; supported are "+supportedKinds)
}

// identity names an object of our group that is in the cluster only once; it is empty for others.
func identity(object map[string]any) string {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if !strings.HasPrefix(version, trainerv1alpha1.Group+"/") || name == "" {
		return ""
	}
	namespace, _ := metadata["namespace"].(string)
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}
