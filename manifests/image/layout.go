package image

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The annotations by which tools find an image in a layout: the OCI specification's, and containerd's, which has the
// whole name.
const (
	refName       = "org.opencontainers.image.ref.name"
	containerName = "io.containerd.image.name"
)

// Made is an image for all platforms, with its bills of materials and provenances.
type Made struct {
	Command Command
	Index   oci.ImageIndex
	// Referrers are the bills of materials and the provenances: each names the image of a platform as its subject.
	Referrers []oci.Image
	// Images are those of the platforms, in their order.
	Images []oci.Image
}

// Make makes the image of a command from its binaries, one for each platform.
func Make(c Command, of Source, binaries []string) (Made, error) {
	made := Made{Command: c, Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, binary := range binaries {
		image, err := Platform(c, of, binary)
		if err != nil {
			return made, err
		}
		about, err := referrers(c, of, image, binary)
		if err != nil {
			return made, err
		}
		made.Images, made.Referrers = append(made.Images, image), append(made.Referrers, about...)
		config, err := image.ConfigFile()
		if err != nil {
			return made, fmt.Errorf("reading an image's configuration: %w", err)
		}
		made.Index = mutate.AppendManifests(made.Index, mutate.IndexAddendum{
			Add: image, Descriptor: oci.Descriptor{Platform: config.Platform()},
		})
	}
	return made, nil
}

// referrers returns the bill of materials and the provenance of an image.
func referrers(c Command, of Source, image oci.Image, binary string) ([]oci.Image, error) {
	about, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describing an image: %w", err)
	}
	bill, err := SBOM(c, of, binary)
	if err != nil {
		return nil, err
	}
	made, err := Provenance(c, of, about.Digest, binary)
	if err != nil {
		return nil, err
	}
	var out []oci.Image
	for _, artifact := range []struct {
		kind    types.MediaType
		content []byte
	}{{MediaTypeSBOM, bill}, {MediaTypeProvenance, made}} {
		one, err := artifactOf(artifact.kind, artifact.content, *about)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// errNoImage indicates that the library returned another type than it was given.
var errNoImage = errors.New("an image with a subject is no image")

// artifactOf is a manifest whose only layer is a document about a subject (OCI image specification 1.1, artifacts).
func artifactOf(kind types.MediaType, content []byte, about oci.Descriptor) (oci.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), kind)
	made, err := mutate.AppendLayers(base, static.NewLayer(content, kind))
	if err != nil {
		return nil, fmt.Errorf("attaching a document: %w", err)
	}
	about.Platform, about.Annotations = nil, nil
	image, ok := mutate.Subject(made, about).(oci.Image)
	if !ok {
		return nil, fmt.Errorf("attaching a document: %w", errNoImage)
	}
	return image, nil
}

// library is the prefix that container runtimes add to an image name without a registry.
const library = "docker.io/library"

// Write writes an image as an OCI layout, a folder of dir that has the command's name. Container runtimes name it
// registry/command:version. The default registry is the one that they add to names without a registry.
func Write(dir, registry string, of Source, made Made) error {
	at, err := layout.Write(filepath.Join(dir, made.Command.Name), empty.Index)
	if err != nil {
		return fmt.Errorf("writing a layout: %w", err)
	}
	name := cmp.Or(registry, library) + "/" + made.Command.Name + ":" + of.Version
	err = at.AppendIndex(
		made.Index,
		layout.WithAnnotations(map[string]string{refName: of.Version, containerName: name}),
	)
	if err != nil {
		return fmt.Errorf("writing an image: %w", err)
	}
	for _, about := range made.Referrers {
		if err := at.AppendImage(about); err != nil {
			return fmt.Errorf("writing what is about an image: %w", err)
		}
	}
	return nil
}

// Size returns the compressed size of an image in bytes: its configuration and its layers.
func Size(image oci.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, fmt.Errorf("reading a manifest: %w", err)
	}
	sum := manifest.Config.Size
	for i := range manifest.Layers {
		sum += manifest.Layers[i].Size
	}
	return sum, nil
}

// Unpacked returns the size of an image on a node's disk in bytes: of its layers when they are unpacked.
func Unpacked(image oci.Image) (int64, error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, fmt.Errorf("reading the layers: %w", err)
	}
	var sum int64
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return 0, fmt.Errorf("unpacking a layer: %w", err)
		}
		size, err := io.Copy(io.Discard, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return 0, fmt.Errorf("unpacking a layer: %w", err)
		}
		sum += size
	}
	return sum, nil
}
