package bundle_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/lockstep-project/lockstep/manifests/bundle"
	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/image"
	"github.com/lockstep-project/lockstep/manifests/render"
)

var source = image.Source{Version: "v1.2.3", Created: time.Unix(1700000000, 0).UTC()}

// jobsetChart is the folder of JobSet's chart, in its module.
func jobsetChart(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "charts", "jobset")
}

// saved packs the chart into a folder of the test.
func saved(t *testing.T) string {
	t.Helper()
	made, err := bundle.Chart(chart.Files, source, jobsetChart(t))
	if err != nil {
		t.Fatal(err)
	}
	file, err := bundle.Save(made, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A packed chart has the commit's version and JobSet's chart in it, and the same bits each time.
func TestChart_IsTheSameEachTime(t *testing.T) {
	first, second := saved(t), saved(t)
	if filepath.Base(first) != "lockstep-1.2.3.tgz" {
		t.Errorf("it is called %s", filepath.Base(first))
	}
	if a, b := read(t, first), read(t, second); !bytes.Equal(a, b) {
		t.Error("packed twice, it is not the same")
	}
	made, err := loader.LoadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if made.Metadata.AppVersion != "v1.2.3" || len(made.Dependencies()) != 1 ||
		made.Dependencies()[0].Name() != "jobset" {
		t.Errorf("version %s, dependencies %v", made.Metadata.AppVersion, made.Dependencies())
	}
}

// The Secret's data, which JobSet writes, is not in the packed chart, which could not be upgraded with it; so JobSet
// starts again to find it.
func TestChart_LeavesJobSetsCertificateToIt(t *testing.T) {
	made, err := loader.LoadFile(saved(t))
	if err != nil {
		t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: "lockstep", Namespace: "lockstep-system", IsInstall: true}
	values, err := util.ToRenderValues(made, nil, options, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(made, values)
	if err != nil {
		t.Fatal(err)
	}
	secrets, probes := 0, 0
	for _, content := range files {
		objects, err := render.Objects([]byte(content))
		if err != nil {
			continue // the notes
		}
		for _, object := range objects {
			if object.GetKind() == "Deployment" && object.GetName() == "jobset-controller" &&
				strings.Contains(content, "startupProbe:") {
				probes++
			}
			if object.GetKind() != "Secret" || object.GetName() != "jobset-webhook-server-cert" {
				continue
			}
			secrets++
			if data, has := object.Object["data"]; has {
				t.Errorf("the Secret has data: %v", data)
			}
		}
	}
	if secrets != 1 || probes != 1 {
		t.Errorf("there are %d such Secrets, and %d Deployments of JobSet's with a startup probe", secrets, probes)
	}
}

// A chart that is not the one that Chart.yaml names, or that was changed, is refused.
func TestChart_RefusesAnotherJobSet(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"another version": func(t *testing.T, dir string) {
			t.Helper()
			change(t, filepath.Join(dir, "Chart.yaml"), "version: 0.12.0", "version: 0.13.0")
		},
		"another Secret": func(t *testing.T, dir string) {
			t.Helper()
			change(t, filepath.Join(dir, "templates", "internalcert", "secret.yaml"), `  ca.key: ""`, `  ca.key: "x"`)
		},
	} {
		dir := filepath.Join(t.TempDir(), "jobset")
		if err := os.CopyFS(dir, os.DirFS(jobsetChart(t))); err != nil {
			t.Fatal(err)
		}
		spoil(t, dir)
		if _, err := bundle.Chart(chart.Files, source, dir); !errors.Is(err, bundle.ErrDependency) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func change(t *testing.T, file, old, text string) {
	t.Helper()
	content := read(t, file)
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("%s has no %q", file, old)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(content, []byte(old), []byte(text), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// The bundle has the chart, the layouts and their sums, and the same bits each time.
func TestArchive(t *testing.T) {
	layouts := t.TempDir()
	for name, content := range map[string]string{"lockstep/index.json": "{}", "lockstep/blobs/sha256/aa": "blob"} {
		file := filepath.Join(layouts, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var packed [2]bytes.Buffer
	for i := range packed {
		var made *helmchart.Chart
		made, err := bundle.Chart(chart.Files, source, jobsetChart(t))
		if err != nil {
			t.Fatal(err)
		}
		file, err := bundle.Save(made, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := bundle.Archive(&packed[i], "lockstep-1.2.3", file, layouts, source.Created); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed[0].Bytes(), packed[1].Bytes()) {
		t.Error("packed twice, it is not the same")
	}
	sums := map[string]string{}
	var said string
	for archive := tar.NewReader(&packed[0]); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(header.Name, "lockstep-1.2.3/")
		if name == "SHA256SUMS" {
			said = string(content)
			continue
		}
		sum := sha256.Sum256(content)
		sums[name] = hex.EncodeToString(sum[:])
	}
	for _, name := range []string{"lockstep-1.2.3.tgz", "images/lockstep/index.json", "images/lockstep/blobs/sha256/aa"} {
		if sums[name] == "" || !strings.Contains(said, sums[name]+"  "+name+"\n") {
			t.Errorf("%s has sum %q, and SHA256SUMS says\n%s", name, sums[name], said)
		}
	}
}
