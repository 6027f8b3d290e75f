package image_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/lockstep-project/lockstep/manifests/image"
)

var (
	command = image.Command{Name: "tool", Title: "A tool", Description: "It does nothing."}
	source  = image.Source{Version: "v1.2.3", Revision: "0123abcd", Created: time.Unix(1_700_000_000, 0).UTC()}
)

// build builds a program of its own module for a platform.
func build(t *testing.T, architecture string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/tool\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "tool")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", out, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func makeImage(t *testing.T) image.Made {
	t.Helper()
	made, err := image.Make(command, source, []string{build(t, "amd64"), build(t, "arm64")})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Two builds of an image, one after the other, have the same bits.
func TestMake_IsTheSameEachTime(t *testing.T) {
	first, second := makeImage(t), makeImage(t)
	a, err := first.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := second.Index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("digests %v and %v differ", a, b)
	}
	for i := range first.Referrers {
		a, _ := first.Referrers[i].Digest()
		b, _ := second.Referrers[i].Digest()
		if a != b {
			t.Errorf("document %d: digests %v and %v differ", i, a, b)
		}
	}
}

// An image has the binary, the account that it runs under, and nothing else.
func TestMake_HasTheBinaryAndAnAccount(t *testing.T) {
	made := makeImage(t)
	for i, architecture := range []string{"amd64", "arm64"} {
		config, err := made.Images[i].ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != architecture || config.OS != "linux" || config.Config.User != "65532:65532" ||
			strings.Join(config.Config.Entrypoint, " ") != "/usr/bin/tool" {
			t.Errorf("it is run as %+v on %s", config.Config, config.Platform())
		}
		if got := config.Config.Labels["org.opencontainers.image.revision"]; got != source.Revision {
			t.Errorf("its revision is %q", got)
		}
		want := "etc/ etc/group etc/passwd usr/ usr/bin/ usr/bin/tool"
		if got := strings.Join(files(t, made.Images[i]), " "); got != want {
			t.Errorf("it has %q, want %q", got, want)
		}
	}
}

// Unpacked, an image takes a little more than its binary; packed, less.
func TestUnpacked_IsTheBinaryAndAnAccount(t *testing.T) {
	binary := build(t, "amd64")
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	made, err := image.Platform(command, source, binary)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := image.Size(made)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := image.Unpacked(made)
	if err != nil {
		t.Fatal(err)
	}
	const entries = 16 << 10 // of archives
	if packed >= info.Size() || unpacked < info.Size() || unpacked > info.Size()+entries {
		t.Errorf("a binary of %d bytes takes %d, unpacked %d", info.Size(), packed, unpacked)
	}
}

// files returns the names of the files in the layers of an image.
func files(t *testing.T, of oci.Image) []string {
	t.Helper()
	layers, err := of.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(content)
		for {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Uid != 0 || !header.ModTime.Equal(time.Unix(0, 0)) {
				t.Errorf("%s tells who made it: %d, %v", header.Name, header.Uid, header.ModTime)
			}
			names = append(names, header.Name)
		}
	}
	return names
}

// The layout is valid, and has the documents about the images beside them.
func TestWrite_LayoutIsWhole(t *testing.T) {
	made, dir := makeImage(t), t.TempDir()
	if err := image.Write(dir, "registry.example.com/lockstep", source, made); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(images); err != nil {
		t.Error(err)
	}
	if n := len(manifest.Manifests); n != 1+4 {
		t.Errorf("the layout has %d entries, want the image and four documents", n)
	}
	if got := manifest.Manifests[0].Annotations["io.containerd.image.name"]; got != "registry.example.com/lockstep/tool:v1.2.3" {
		t.Errorf("the image is called %q", got)
	}
}

// The bill of materials names the modules in the binary, and the provenance its commit.
func TestMake_SaysOfWhatItIsMade(t *testing.T) {
	made := makeImage(t)
	var bill struct {
		BOMFormat  string
		Components []struct{ PURL string }
		Metadata   struct {
			Component struct{ Name, Version string }
		}
	}
	document(t, made.Referrers[0], &bill)
	if bill.BOMFormat != "CycloneDX" || bill.Metadata.Component.Version != source.Version ||
		len(bill.Components) == 0 ||
		!strings.HasPrefix(bill.Components[0].PURL, "pkg:golang/std@") {
		t.Errorf("the bill of materials is %+v", bill)
	}
	digest, err := made.Images[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject   []struct{ Digest map[string]string }
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	document(t, made.Referrers[1], &statement)
	if statement.Subject[0].Digest["sha256"] != digest.Hex ||
		statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != source.Revision {
		t.Errorf("the provenance is %+v", statement)
	}
	for _, about := range made.Referrers[:2] {
		manifest, err := about.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if manifest.Subject == nil || manifest.Subject.Digest != digest {
			t.Errorf("a document is about %+v, want %v", manifest.Subject, digest)
		}
	}
}

func document(t *testing.T, about oci.Image, into any) {
	t.Helper()
	layers, err := about.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if err := json.NewDecoder(content).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// A binary that does not name its commit makes no image: the source of every program in a cluster must be traceable.
func TestSourceOf_WantsACommit(t *testing.T) {
	if _, err := image.SourceOf(build(t, "amd64")); !errors.Is(err, image.ErrUnknown) {
		t.Errorf("the error is %v", err)
	}
}

// Files that are no Go binaries are refused.
func TestMake_RefusesWhatIsNoGoBinary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := image.Make(command, source, []string{path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}

// A binary of another project's module has that module as its source.
func TestSourceOf_Module(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "stringer")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "golang.org/x/tools/cmd/stringer")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	of, err := image.SourceOf(binary)
	if err != nil || !strings.HasPrefix(of.Version, "v") || !strings.HasPrefix(of.Revision, "h1:") ||
		!of.Created.IsZero() {
		t.Errorf("its source is %+v (%v)", of, err)
	}
}
