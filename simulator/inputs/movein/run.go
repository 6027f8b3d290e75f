package movein

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/migrate"
	shipped "github.com/lockstep-project/lockstep/manifests/dialects"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// run is shared by the documents of one run.
type run struct {
	options Options
	// table has the dialects that are built in, and all rows that ship.
	table dialects.Table
	// rows are the rows that ship, by the name of their dialect.
	rows map[string]dialects.Row
	// needed are names of rows that gangs of these documents need.
	needed map[string]bool
	// objects are the documents' contents as they were read.
	objects []map[string]any
}

func newRun(documents []migrate.Document, options Options) (*run, error) {
	r := &run{options: options, rows: map[string]dialects.Row{}, needed: map[string]bool{}}
	explicit, owners := dialects.Builtin()
	files, err := fs.Glob(shipped.Files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing dialects: %w", err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(shipped.Files, file)
		if err != nil {
			return nil, fmt.Errorf("reading dialect %s: %w", file, err)
		}
		var row dialects.Row
		if err := yaml.UnmarshalStrict(content, &row); err != nil {
			return nil, fmt.Errorf("reading dialect %s: %w", file, err)
		}
		dialect, err := dialects.Configured(row)
		if err != nil {
			return nil, err
		}
		explicit = append(explicit, dialect)
		r.rows[row.Name] = row
	}
	r.table = slices.Concat(explicit, owners)
	for _, document := range documents {
		r.objects = append(r.objects, document.Content)
	}
	return r, nil
}

// neededRows returns the rows that gangs of the documents need, by name.
func (r *run) neededRows() []dialects.Row {
	var rows []dialects.Row
	for _, name := range slices.Sorted(maps.Keys(r.needed)) {
		rows = append(rows, r.rows[name])
	}
	return rows
}

// find returns the object that describes a gang, if it is one of the documents.
func (r *run) find(source dialects.Source, namespace string) map[string]any {
	for _, object := range r.objects {
		of := typeOf(object)
		if of.group != source.Resource.Group || strings.ToLower(of.kind)+"s" != source.Resource.Resource {
			continue
		}
		name, _ := valueAt(object, at(metadata, "name")).(string)
		in, _ := valueAt(object, at(metadata, "namespace")).(string)
		if name == source.Name && in == namespace {
			return object
		}
	}
	return nil
}
