package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// Binaries are the executables of the embedded cluster, and JobSet's manifests of the same version.
type Binaries struct {
	ControlPlane, JobSet, KWOK, Controller, Scheduler string
	// kubernetes is the release that runs.
	kubernetes controlPlane
	// JobSetManifests is the folder that holds JobSet's crd.yaml and webhook.yaml.
	JobSetManifests string
	// Kueue is empty unless it was asked for; KueueManifests is the folder that holds its manifests.
	Kueue, KueueManifests string
}

// Build makes the binaries that are missing from the source tree that holds the running executable or the working
// directory, and reports its progress. Upstream's components are built once into a folder whose name is the digest of
// all their inputs; Lockstep's own are built each time, which the compiler's cache makes cheap, unless they lie beside
// the running executable (as after make build).
func Build(ctx context.Context, report func(string)) (Binaries, error) {
	root, err := sourcetree.Root()
	if err != nil {
		return Binaries{}, err
	}
	upstream, err := buildUpstream(ctx, root, report)
	if err != nil {
		return Binaries{}, err
	}
	own, err := ownBinaries(ctx, root, report)
	if err != nil {
		return Binaries{}, err
	}
	return Binaries{
		ControlPlane:    filepath.Join(upstream, "control-plane"),
		JobSet:          filepath.Join(upstream, "jobset"),
		KWOK:            filepath.Join(upstream, "kwok"),
		JobSetManifests: upstream,
		Controller:      filepath.Join(own, "lockstep-controller"),
		Scheduler:       filepath.Join(own, "lockstep-scheduler"),
	}, nil
}

// buildUpstream returns the folder with upstream's components, building them if this version of them is not there.
func buildUpstream(ctx context.Context, root string, report func(string)) (string, error) {
	digest, err := upstreamDigest(root)
	if err != nil {
		return "", err
	}
	return buildOnce(filepath.Join(root, "bin", "cluster"), digest, func(dir string) error {
		report("building etcd, Kubernetes, JobSet and KWOK (once; minutes on a new machine)")
		err := goBuild(ctx, mainModule(root), dir, report,
			"./simulator/cmd/control-plane", "sigs.k8s.io/jobset", "sigs.k8s.io/kwok/cmd/kwok")
		if err != nil {
			return err
		}
		return copyJobSetManifests(ctx, root, dir)
	})
}

// buildOnce returns the folder of that digest in a cache, and lets build fill it if it is not there. Runs side by side
// build one after the other, and a folder appears under its name only when it is complete.
func buildOnce(cache, digest string, build func(dir string) error) (string, error) {
	dir := filepath.Join(cache, digest)
	if isDir(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("creating the build cache: %w", err)
	}
	lock, err := lockFile(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if isDir(dir) { // another run has built it meanwhile
		return dir, nil
	}
	fresh := filepath.Join(cache, "building")
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
		return "", fmt.Errorf("creating the build cache: %w", err)
	}
	if err := build(fresh); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return "", fmt.Errorf("finishing the build cache: %w", err)
	}
	return dir, removeOthers(cache, digest)
}

// lockFile waits until no other run holds the lock, and takes it until the file is closed.
func lockFile(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the build cache: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the build cache: %w", err), lock.Close())
	}
	return lock, nil
}

// removeOthers removes other versions, which are of no use to this checkout any more.
func removeOthers(cache, digest string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return fmt.Errorf("removing older builds: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == digest {
			continue
		}
		if err := os.RemoveAll(filepath.Join(cache, entry.Name())); err != nil {
			return fmt.Errorf("removing older builds: %w", err)
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// upstreamDigest identifies the inputs of upstream's components: the pinned versions, the Go release and our main.
func upstreamDigest(root string) (string, error) {
	files := []string{"go.mod", "go.sum"}
	for _, pattern := range []string{"simulator/cmd/control-plane/*.go", "simulator/live/cluster/etcd/*.go"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", pattern, err)
		}
		for _, match := range matches {
			relative, err := filepath.Rel(root, match)
			if err != nil {
				return "", fmt.Errorf("listing %s: %w", pattern, err)
			}
			files = append(files, relative)
		}
	}
	return digestOf(root, files)
}

// digestOf is the digest of the Go release and of files below root, in their order.
func digestOf(root string, files []string) (string, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, runtime.Version()) // a hash never fails to take bytes
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", fmt.Errorf("reading what the cluster is built from: %w", err)
		}
		_, _ = fmt.Fprintf(sum, "\n%s %d\n", name, len(content))
		_, _ = sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// ownBinaries returns the folder that holds lockstep-controller and lockstep-scheduler. Runs side by side build one
// after the other: the compiler replaces a file that is old, and leaves alone what another run has just built and is
// starting.
func ownBinaries(ctx context.Context, root string, report func(string)) (string, error) {
	if executable, err := os.Executable(); err == nil {
		dir := filepath.Dir(executable)
		if isFile(filepath.Join(dir, "lockstep-controller")) && isFile(filepath.Join(dir, "lockstep-scheduler")) {
			return dir, nil
		}
	}
	report("building lockstep-controller and lockstep-scheduler")
	dir := filepath.Join(root, "bin")
	lock, err := lockFile(filepath.Join(dir, "cluster", "lock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	return dir, goBuild(
		ctx,
		mainModule(root),
		dir,
		report,
		"./controller/cmd/lockstep-controller",
		"./scheduler/cmd/lockstep-scheduler",
	)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// goModule is a module of this source tree that things are built from.
type goModule struct {
	root string
	// flags are the arguments of go build when it builds from this module.
	flags []string
}

// mainModule is the module at the root of the source tree.
func mainModule(root string) goModule {
	return goModule{root: root, flags: []string{"-ldflags", stamp(KubernetesVersion)}}
}

// goBuild builds packages of a module into dir and reports its progress.
func goBuild(ctx context.Context, from goModule, dir string, report func(string), packages ...string) error {
	arguments := slices.Concat(
		[]string{"build", "-v", "-p", "2", "-o", dir + string(filepath.Separator)}, from.flags, packages)
	build := exec.CommandContext(ctx, "go", arguments...)
	build.Dir = from.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does: one build cache, no C compiler
	output, err := build.StderrPipe()
	if err != nil {
		return fmt.Errorf("building %s: %w", strings.Join(packages, ", "), err)
	}
	if err := build.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return badinput.At("go", 0, "is not installed or not in PATH", "install the Go release that go.mod names")
		}
		return fmt.Errorf("building %s: %w", strings.Join(packages, ", "), err)
	}
	last := follow(output, report)
	if err := build.Wait(); err != nil {
		return fmt.Errorf("building %s: %w; the end of the compiler's output:\n%s",
			strings.Join(packages, ", "), err, strings.Join(last, "\n"))
	}
	return nil
}

// follow reads the compiler's output, reports its progress, and returns the last lines.
func follow(output io.Reader, report func(string)) []string {
	var last []string
	downloaded, compiled := 0, 0
	for lines := bufio.NewScanner(output); lines.Scan(); {
		last = append(last, lines.Text())
		last = last[max(0, len(last)-15):]
		if strings.HasPrefix(lines.Text(), "go: downloading ") {
			if downloaded++; downloaded%50 == 0 {
				report(fmt.Sprintf("  %d modules downloaded", downloaded))
			}
			continue
		}
		if compiled++; compiled%100 == 0 {
			report(fmt.Sprintf("  %d packages compiled", compiled))
		}
	}
	_, _ = io.Copy(io.Discard, output) // a line that is too long ends the scan; the compiler must not wait for a reader
	return last
}

// KubernetesVersion is the release of Kubernetes that go.mod pins, and that the embedded cluster runs by default.
const KubernetesVersion = "v1.37.2"

// copyJobSetManifests copies JobSet's CRD and webhook manifests into the folder of its binary.
func copyJobSetManifests(ctx context.Context, root, dir string) error {
	module, err := moduleFolder(ctx, root, "sigs.k8s.io/jobset")
	if err != nil {
		return err
	}
	components := filepath.Join(module, "config", "components")
	for from, to := range map[string]string{
		"crd/bases/jobset.x-k8s.io_jobsets.yaml": "crd.yaml",
		"webhook/manifests.yaml":                 "webhook.yaml",
	} {
		content, err := os.ReadFile(filepath.Join(components, from))
		if err != nil {
			return fmt.Errorf("reading JobSet's manifests: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o644); err != nil {
			return fmt.Errorf("keeping JobSet's manifests: %w", err)
		}
	}
	return nil
}

// moduleFolder returns the folder in which the go command has a dependency of the module at root.
func moduleFolder(ctx context.Context, root, module string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = root
	folder, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("finding module %s: %w", module, err)
	}
	return strings.TrimSpace(string(folder)), nil
}

// moduleVersion reads which version of a module a binary was built with; "devel" is our own working tree.
func moduleVersion(binary, module string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "unknown"
	}
	if info.Main.Path == module {
		return strings.Trim(info.Main.Version, "()")
	}
	at := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return d.Path == module })
	if at < 0 {
		return "unknown"
	}
	return info.Deps[at].Version
}
