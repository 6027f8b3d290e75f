package realnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/distribution/reference"
	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Overlay is an image that adds files to the userland.
type Overlay struct {
	// Name is the image's reference, as pods write it.
	Name string
	// Files is a folder on this machine whose content is the root folder of the added layer. /usr and /opt stay the
	// userland's.
	Files string
	// Entrypoint and Dir are the image's command and working directory. Both may be empty.
	Entrypoint []string
	Dir        string
	// Programs is a folder of the image whose programs are found first; empty for none.
	Programs string
}

// LoadOverlay loads an image of the userland with further files.
func (n *Node) LoadOverlay(ctx context.Context, overlay Overlay) error {
	name, err := reference.ParseDockerRef(overlay.Name)
	if err != nil {
		return fmt.Errorf("reading the name of image %s: %w", overlay.Name, err)
	}
	folder := filepath.Base(reference.Path(name))
	archive := n.file(folder + ".tar")
	if err := pack(overlay.Files, archive); err != nil {
		return err
	}
	defer func() { _ = os.Remove(archive) }() // the node's folder is deleted with the run
	layer, err := tarball.LayerFromFile(archive, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return fmt.Errorf("reading the layer of image %s: %w", overlay.Name, err)
	}
	path := userlandPath
	if overlay.Programs != "" {
		path = "PATH=" + overlay.Programs + ":" + path[len("PATH="):]
	}
	made, err := userlandImage(filepath.Join(n.userland, userlandLayer), oci.Config{
		WorkingDir: overlay.Dir, Entrypoint: overlay.Entrypoint, Env: []string{path},
	})
	if err == nil {
		made, err = mutate.AppendLayers(made, layer)
	}
	if err != nil {
		return fmt.Errorf("putting image %s together: %w", overlay.Name, err)
	}
	return n.loadImage(ctx, folder, name.String(), made)
}
