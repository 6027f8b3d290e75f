package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The account of the images, as in distroless images: Kubernetes checks runAsNonRoot by the number.
const (
	user = "65532:65532"
	// accounts are the files by which libraries find the account's name.
	passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// Command names the command that an image runs, and describes it.
type Command struct {
	// Name is that of the binary and of the image, Title and Description are for people.
	Name, Title, Description string
	// Path is the path of the binary in the image. The default is /usr/bin/Name.
	Path string
}

// path returns the path of the binary in the image.
func (c Command) path() string { return cmp.Or(c.Path, "/usr/bin/"+c.Name) }

// Source identifies the commit or the Go module that images are built from.
type Source struct {
	// Version and Revision are those of the commit, or the version and the sum of the module (h1:...).
	Version, Revision string
	// Created is the commit's instant. A module has none.
	Created time.Time
}

// ErrUnknown indicates a binary that does not name its commit.
var ErrUnknown = errors.New("it does not say from which commit it is: build it in a git clone, with -buildvcs")

// SourceOf returns the source of a binary, as the Go toolchain recorded it. A version is an image's tag, too, so a plus
// sign becomes a hyphen.
func SourceOf(binary string) (Source, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return Source{}, fmt.Errorf("reading %s: %w", binary, err)
	}
	if info.Main.Sum != "" {
		return Source{Version: info.Main.Version, Revision: info.Main.Sum}, nil
	}
	created, err := time.Parse(time.RFC3339, setting(info, "vcs.time"))
	if err != nil || setting(info, "vcs.revision") == "" {
		return Source{}, fmt.Errorf("%s: %w", binary, ErrUnknown)
	}
	return Source{
		Version:  strings.ReplaceAll(info.Main.Version, "+", "-"),
		Revision: setting(info, "vcs.revision"),
		Created:  created.UTC(),
	}, nil
}

// Platform returns the image of a command for the platform that its binary is made for. The binary must have Go's build
// information.
func Platform(c Command, of Source, binary string) (oci.Image, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", binary, err)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading a binary: %w", err)
	}
	layers, err := layersOf(
		[]file{{"etc/", 0o755, nil}, {"etc/group", 0o644, []byte(group)}, {"etc/passwd", 0o644, []byte(passwd)}},
		append(folders(c.path()), file{c.path()[1:], 0o755, program}),
	)
	if err != nil {
		return nil, err
	}
	made, err := mutate.AppendLayers(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layers...)
	if err != nil {
		return nil, fmt.Errorf("putting an image together: %w", err)
	}
	return configured(made, c, of, setting(info, "GOARCH"))
}

// folders are those above a file.
func folders(of string) []file {
	var found []file
	for above := path.Dir(of); above != "/"; above = path.Dir(above) {
		found = append([]file{{above[1:] + "/", 0o755, nil}}, found...)
	}
	return found
}

// configured sets the image's user, entrypoint, environment and labels.
func configured(made oci.Image, c Command, of Source, architecture string) (oci.Image, error) {
	config, err := made.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading an image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, oci.Time{Time: of.Created}
	config.Config = oci.Config{
		User: user, WorkingDir: "/", Entrypoint: []string{c.path()},
		Env:    []string{"PATH=/usr/bin"},
		Labels: labels(c, of),
	}
	for i := range config.History {
		config.History[i].Created = oci.Time{Time: of.Created}
	}
	made, err = mutate.ConfigFile(made, config)
	if err != nil {
		return nil, fmt.Errorf("configuring an image: %w", err)
	}
	return made, nil
}

// labels are those of the OCI image specification.
func labels(c Command, of Source) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       c.Title,
		"org.opencontainers.image.description": c.Description,
		"org.opencontainers.image.version":     of.Version,
		"org.opencontainers.image.revision":    of.Revision,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     of.Created.UTC().Format(time.RFC3339),
	}
}

// setting is a setting of the build.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// file is an entry of a layer; a directory's name ends with a slash.
type file struct {
	name    string
	mode    int64
	content []byte
}

func layersOf(contents ...[]file) ([]oci.Layer, error) {
	layers := make([]oci.Layer, 0, len(contents))
	for _, files := range contents {
		archive, err := archived(files)
		if err != nil {
			return nil, err
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
		layer, err := tarball.LayerFromOpener(
			open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9), tarball.WithCompressedCaching)
		if err != nil {
			return nil, fmt.Errorf("making a layer: %w", err)
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// archived returns a tar archive without owners and modification times.
func archived(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{
			Name:     f.name,
			Mode:     f.mode,
			Size:     int64(len(f.content)),
			Typeflag: tar.TypeReg,
			Format:   tar.FormatUSTAR,
			ModTime:  time.Unix(0, 0),
		}
		if len(f.name) > 0 && f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("archiving %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("archiving: %w", err)
	}
	return out.Bytes(), nil
}
