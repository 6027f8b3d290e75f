package realnode

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/manifests/image"
)

// Registry begins the names of images that are made here, with their tag.
const (
	Registry = "docker.io/local"
	Tag      = "here"
	// RankImage is that of command rank, which every node has: containers that hold pods together are of it, and so may
	// be ranks.
	RankImage = Registry + "/rank:" + Tag
)

// loadPause loads the image of rank when containerd answers, and that of the userland if there is one.
func (n *Node) loadPause(ctx context.Context) error {
	if n.userland != "" {
		if err := n.loadUserland(ctx); err != nil {
			return err
		}
	}
	return n.LoadBinary(ctx, filepath.Join(n.programs, "rank"), image.Command{Name: "rank", Title: "Rank"})
}

// LoadBinary makes an image of a static binary, as make images does of Lockstep's, and loads it as Registry/NAME:Tag.
func (n *Node) LoadBinary(ctx context.Context, binary string, command image.Command) error {
	name := command.Name
	of := image.Source{Version: Tag, Revision: Tag, Created: time.Unix(0, 0)}
	made, err := image.Make(command, of, []string{binary})
	if err != nil {
		return fmt.Errorf("making image %s: %w", name, err)
	}
	layouts := n.file("layouts")
	if err := os.RemoveAll(filepath.Join(layouts, name)); err != nil {
		return fmt.Errorf("removing an earlier layout: %w", err)
	}
	if err := image.Write(layouts, Registry, of, made); err != nil {
		return fmt.Errorf("writing image %s: %w", name, err)
	}
	return n.Load(ctx, filepath.Join(layouts, name))
}

// Load loads an OCI layout into the node's containerd, under the names that it has in the layout.
func (n *Node) Load(ctx context.Context, layout string) error {
	archive := layout + ".tar"
	if err := pack(layout, archive); err != nil {
		return err
	}
	defer func() { _ = os.Remove(archive) }() // the node's folder is deleted with the run
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		last = n.Ctr(ctx, io.Discard, "images", "import", archive)
		return last == nil, n.supervisor.check()
	})
	if err != nil {
		return fmt.Errorf("loading %s: %w", layout, errors.Join(err, last))
	}
	return nil
}

// Ctr runs containerd's own client in the namespace of Kubernetes, with its output to out. The error includes its error
// output.
func (n *Node) Ctr(ctx context.Context, out io.Writer, args ...string) error {
	arguments := append([]string{"--address=" + n.socket(), "--namespace=k8s.io"}, args...)
	command := exec.CommandContext(ctx, filepath.Join(n.programs, "ctr"), arguments...)
	command.Stdout = out
	var complaint tail
	command.Stderr = &complaint
	if err := command.Run(); err != nil {
		return fmt.Errorf("ctr %v: %w: %s", args, err, complaint)
	}
	return nil
}

// tail retains the last bytes that are written into it.
type tail []byte

const tailLength = 2000

func (t *tail) Write(text []byte) (int, error) {
	*t = append(*t, text...)
	*t = (*t)[max(0, len(*t)-tailLength):]
	return len(text), nil
}

// pack writes the files of a folder into a tar archive.
func pack(folder, archive string) error {
	out, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("creating an archive: %w", err)
	}
	to := tar.NewWriter(out)
	err = to.AddFS(os.DirFS(folder))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no layout: %w", err)
	}
	if err := errors.Join(err, to.Close(), out.Close()); err != nil {
		return fmt.Errorf("packing %s: %w", folder, err)
	}
	return nil
}
