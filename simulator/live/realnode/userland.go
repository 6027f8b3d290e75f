package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/distribution/reference"
	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A userland is a Debian with frameworks of PyPI, of some gigabytes. Images of a few megabytes have its small and
// writable parts; the folders of programs are mounted into every container.

// UserlandImage is the image of the userland.
const UserlandImage = Registry + "/userland:" + Tag

// The files of make userland: the file system, and its part that images have.
const (
	userlandRoot  = "root"
	userlandLayer = "layer.tar"
)

// userlandPath is the variable by which its programs are found.
const userlandPath = "PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// userlandFolders are those that are mounted.
func userlandFolders() []string { return []string{"/usr", "/opt"} }

const baseSpecFile = "base-spec.json"

// baseSpec is the line of containerd's configuration by which every container has the userland's mounts.
func (n *Node) baseSpec() string {
	if n.userland == "" {
		return ""
	}
	return fmt.Sprintf("    base_runtime_spec = %q\n", n.file(baseSpecFile))
}

// writeBaseSpec writes containerd's own description of a container with mounts of the userland.
func (n *Node) writeBaseSpec(ctx context.Context) error {
	if n.userland == "" {
		return nil
	}
	out, err := exec.CommandContext(ctx, filepath.Join(n.programs, "ctr"), "oci", "spec").Output()
	if err != nil {
		return fmt.Errorf("asking containerd for its description of containers: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(out, &spec); err != nil {
		return fmt.Errorf("decoding containerd's description of containers: %w", err)
	}
	mounts, _ := spec["mounts"].([]any)
	for _, folder := range userlandFolders() {
		mounts = append(mounts, map[string]any{
			"destination": folder, "type": "bind", "source": filepath.Join(n.userland, userlandRoot, folder),
			"options": []string{"rbind", "ro"},
		})
	}
	spec["mounts"] = mounts
	encoded, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(n.file(baseSpecFile), encoded, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the description of containers: %w", err)
	}
	return nil
}

// loadUserland makes the image of the userland and loads it.
func (n *Node) loadUserland(ctx context.Context) error {
	made, err := userlandImage(filepath.Join(n.userland, userlandLayer), oci.Config{
		WorkingDir: "/workspace", Cmd: []string{"python", "train.py"},
		Env: []string{userlandPath},
	})
	if err != nil {
		return err
	}
	return n.loadImage(ctx, "userland", UserlandImage, made)
}

// loadImage writes an image into a layout of the node's folder and loads it under a name.
func (n *Node) loadImage(ctx context.Context, folder, name string, made oci.Image) error {
	folder = n.file(filepath.Join("layouts", folder))
	path, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = path.AppendImage(made, layout.WithAnnotations(map[string]string{
			"io.containerd.image.name": name, "org.opencontainers.image.ref.name": Tag,
		}))
	}
	if err != nil {
		return fmt.Errorf("writing image %s: %w", name, err)
	}
	return n.Load(ctx, folder)
}

// userlandImage is an image of one layer, the userland's, with a configuration.
func userlandImage(file string, configuration oci.Config) (oci.Image, error) {
	layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("reading the layer of the userland: %w", err)
	}
	made, err := mutate.AppendLayers(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, fmt.Errorf("putting the image of the userland together: %w", err)
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of an image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", "amd64", configuration
	made, err = mutate.ConfigFile(made, config)
	if err != nil {
		return nil, fmt.Errorf("configuring the image of the userland: %w", err)
	}
	return made, nil
}

// TagUserland gives the image of the userland further names: those of the images that pods want.
func (n *Node) TagUserland(ctx context.Context, names ...string) error {
	for _, name := range names {
		parsed, err := reference.ParseDockerRef(name)
		if err != nil {
			return fmt.Errorf("reading the name of image %s: %w", name, err)
		}
		if err := n.Ctr(ctx, io.Discard, "images", "tag", "--force", UserlandImage, parsed.String()); err != nil {
			return fmt.Errorf("naming the image of the userland %s: %w", name, err)
		}
	}
	return nil
}

// Images are the names of all images in objects, wherever a field is called image, sorted.
func Images(objects []*unstructured.Unstructured) []string {
	found := map[string]bool{}
	for _, object := range objects {
		addImages(object.Object, found)
	}
	return slices.Sorted(maps.Keys(found))
}

func addImages(value any, found map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if name, ok := below.(string); ok && key == "image" {
				found[name] = true
			}
			addImages(below, found)
		}
	case []any:
		for _, below := range value {
			addImages(below, found)
		}
	}
}

// Userland is the folder of make userland, whose programs can be run in this network, too, as those of a user at his
// desk.
type Userland struct {
	// Dir is the folder.
	Dir string
}

// errNoUserland indicates that there is no userland.
var errNoUserland = errors.New("there is no userland; make userland builds it")

// OpenUserland makes the programs of a userland usable for Command. It must be called in the namespaces of Main.
func OpenUserland(dir string) (Userland, error) {
	u := Userland{Dir: dir}
	if _, err := os.Stat(filepath.Join(dir, userlandLayer)); err != nil {
		return u, fmt.Errorf("%s: %w", dir, errNoUserland)
	}
	for _, mount := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"/dev", "dev", "", unix.MS_BIND | unix.MS_REC}, {"proc", "proc", "proc", 0}, {"tmpfs", "tmp", "tmpfs", 0},
	} {
		if err := unix.Mount(
			mount.source,
			filepath.Join(dir, userlandRoot, mount.target),
			mount.kind,
			mount.flags,
			"",
		); err != nil {
			return u, fmt.Errorf("mounting %s into the userland: %w", mount.source, err)
		}
	}
	return u, nil
}

// Share has a folder of this machine appear as /tmp/NAME in the userland.
func (u Userland) Share(folder, name string) error {
	target := filepath.Join(u.Dir, userlandRoot, "tmp", name)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("making a folder of the userland: %w", err)
	}
	if err := unix.Mount(folder, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing %s with the userland: %w", folder, err)
	}
	return nil
}

// Command is a program of the userland, with the programs of PyPI before Debian's.
func (u Userland) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "/usr/bin/env", append([]string{program}, args...)...)
	command.Dir = "/"
	command.Env = []string{userlandPath, "HOME=/tmp", "PYTHONDONTWRITEBYTECODE=1"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: filepath.Join(u.Dir, userlandRoot)}
	return command
}
