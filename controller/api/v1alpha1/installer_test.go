package v1alpha1_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	// mostJSON keeps a CRD below the 262,144 bytes that all annotations of an object have together: kubectl apply
	// stores the object in one.
	mostJSON = 250_000
	// mostRelease keeps a release of Helm's below the 1 MiB that a Secret may have, with room for the rest of a chart.
	mostRelease = 700_000
)

// Every installer takes the CRDs: kubectl apply, ArgoCD, and Helm, whichever folder of a chart they are in.
func TestCRDs_FitEveryInstaller(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v (%v)", files, err)
	}
	var all bytes.Buffer
	var templates []map[string]any
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes as JSON", filepath.Base(file), len(content))
		if len(content) > mostJSON {
			t.Errorf("%s has %d bytes as JSON, want at most %d", file, len(content), mostJSON)
		}
		all.Write(text)
		templates = append(templates, map[string]any{"name": filepath.Base(file), "data": text})
	}
	if size := releaseOf(t, templates, all.String()); size > mostRelease {
		t.Errorf("a release of Helm's has %d bytes, want at most %d", size, mostRelease)
	} else {
		t.Logf("a release of Helm's: %d bytes", size)
	}
}

// releaseOf returns the size of Helm's record of a release: the chart and the rendered manifest, as JSON, gzip and
// base64 (helm.sh/helm/v3, pkg/storage/driver, encodeRelease).
func releaseOf(t *testing.T, templates []map[string]any, manifest string) int {
	t.Helper()
	text, err := json.Marshal(map[string]any{"chart": map[string]any{"templates": templates}, "manifest": manifest})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodedLen(packed.Len())
}
