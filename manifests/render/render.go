// Package render renders the objects that the chart installs, as Helm itself does.
package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
)

// Rendered has the objects that a chart installs, in Helm's order.
type Rendered struct {
	// CRDs are installed first, and stay when the release is uninstalled.
	CRDs []*unstructured.Unstructured
	// Objects are those of the release, Hooks those that Helm makes for the time of an action.
	Objects, Hooks []*unstructured.Unstructured
}

// All returns everything that stays: CRDs first, then the objects.
func (r Rendered) All() []*unstructured.Unstructured { return slices.Concat(r.CRDs, r.Objects) }

// Find returns the objects of a kind, of any namespace, that have the name.
func (r Rendered) Find(kind, name string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range r.All() {
		if object.GetKind() == kind && object.GetName() == name {
			found = append(found, object)
		}
	}
	return found
}

// Chart renders the embedded chart. The error names the value that does not fit the schema, or a template's refusal.
func Chart(release Release) (Rendered, error) { return ChartIn(chart.Files, release) }

// ChartIn renders the chart in a folder.
func ChartIn(folder fs.FS, release Release) (Rendered, error) {
	loaded, err := Load(folder)
	if err != nil {
		return Rendered{}, err
	}
	loaded.Metadata.AppVersion = cmp.Or(release.Version, loaded.Metadata.AppVersion)
	options := common.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(loaded, release.Values, options, common.DefaultCapabilities)
	if err != nil {
		return Rendered{}, fmt.Errorf("values: %w", err)
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		return Rendered{}, fmt.Errorf("rendering the chart: %w", err)
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, parts, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return Rendered{}, fmt.Errorf("sorting what the chart renders: %w", err)
	}
	var out Rendered
	for _, crd := range loaded.CRDObjects() {
		if out.CRDs, err = appended(out.CRDs, crd.Filename, string(crd.File.Data)); err != nil {
			return Rendered{}, err
		}
	}
	for _, part := range parts {
		if out.Objects, err = appended(out.Objects, part.Name, part.Content); err != nil {
			return Rendered{}, err
		}
	}
	for _, hook := range hooks {
		if out.Hooks, err = appended(out.Hooks, hook.Path, hook.Manifest); err != nil {
			return Rendered{}, err
		}
	}
	return out, nil
}

// appended adds the objects of a file.
func appended(objects []*unstructured.Unstructured, file, content string) ([]*unstructured.Unstructured, error) {
	made, err := Objects([]byte(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return append(objects, made...), nil
}

// Load returns the chart in a folder as Helm's library has charts.
func Load(folder fs.FS) (*helmchart.Chart, error) {
	var files []*archive.BufferedFile
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".go" {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		files = append(files, &archive.BufferedFile{Name: name, Data: content})
		return err //nolint:wrapcheck // it names the file
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	return loaded, nil
}

// Objects reads the objects of a stream of YAML, in order.
func Objects(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var found []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("decoding: %w", err)
		case len(object.Object) > 0:
			found = append(found, object)
		}
	}
}
