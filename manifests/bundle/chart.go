// Package bundle makes a build's distributables: the chart with its version and with JobSet's chart in it, and one
// archive with all that an installation without a network needs. Equal commits give equal files.
package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/lockstep-project/lockstep/manifests/image"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// ErrDependency indicates that a chart is not the one that Chart.yaml asks for.
var ErrDependency = errors.New("it is not the chart that Chart.yaml asks for")

// Chart returns the chart in a folder with the version of a commit, which is also the tag of the images.
// The folders are of the charts that Chart.yaml names, which is JobSet's.
func Chart(folder fs.FS, of image.Source, dependencies ...string) (*helmchart.Chart, error) {
	made, err := render.Load(folder)
	if err != nil {
		return nil, err
	}
	made.Metadata.Version = strings.TrimPrefix(of.Version, "v")
	made.Metadata.AppVersion = of.Version
	for _, dependency := range dependencies {
		loaded, err := loader.LoadDir(dependency)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", dependency, err)
		}
		if !slices.ContainsFunc(made.Metadata.Dependencies, func(wanted *helmchart.Dependency) bool {
			return wanted.Name == loaded.Name() && wanted.Version == loaded.Metadata.Version
		}) {
			return nil, fmt.Errorf("%s %s: %w", loaded.Name(), loaded.Metadata.Version, ErrDependency)
		}
		if err := adapt(loaded); err != nil {
			return nil, fmt.Errorf("the chart of %s: %w", loaded.Name(), err)
		}
		made.AddDependency(loaded)
	}
	date(made, of.Created)
	return made, nil
}

// date gives all files of a chart, and of those in it, one time.
func date(of *helmchart.Chart, at time.Time) {
	of.ModTime, of.SchemaModTime = at, at
	for _, files := range [][]*common.File{of.Raw, of.Templates, of.Files} {
		for _, file := range files {
			file.ModTime = at
		}
	}
	for _, dependency := range of.Dependencies() {
		date(dependency, at)
	}
}

// Save writes a chart as NAME-VERSION.tgz into a folder, and returns the file.
func Save(made *helmchart.Chart, dir string) (string, error) {
	file, err := chartutil.Save(made, dir)
	if err != nil {
		return "", fmt.Errorf("packing the chart: %w", err)
	}
	return file, nil
}
