package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// kubernetesModules is the folder of the modules that pin earlier releases of Kubernetes, one for each minor.
const kubernetesModules = "simulator/live/cluster/kubernetes"

// NewestKubernetes is the minor release that go.mod pins and that the embedded cluster runs by default.
const NewestKubernetes = "1.37"

// Kubernetes lists the minor releases that the embedded cluster can run, oldest first.
func Kubernetes() []string { return []string{"1.34", "1.35", "1.36", NewestKubernetes} }

// DefaultMode is the mode that offers most in a minor release.
func DefaultMode(minor string) probe.Mode {
	if minor == NewestKubernetes {
		return probe.Full
	}
	return probe.Resources
}

// CheckKubernetes refuses a mode that does not exist, a minor release that the embedded cluster cannot run, and one
// that does not have the mode's feature gates.
func CheckKubernetes(minor string, mode probe.Mode) error {
	if !slices.Contains([]probe.Mode{probe.Full, probe.Groups, probe.Resources}, mode) {
		return &badinput.Error{
			Where: "--mode " + string(mode), What: "there is no such mode", Mend: "use full, groups or resources",
		}
	}
	if !slices.Contains(Kubernetes(), minor) {
		return &badinput.Error{
			Where: "--kubernetes " + minor, What: "this release cannot be run",
			Mend: "use one of " + strings.Join(Kubernetes(), ", "),
		}
	}
	if mode != probe.Resources && minor != NewestKubernetes {
		return &badinput.Error{
			Where: fmt.Sprintf("--mode %s --kubernetes %s", mode, minor),
			What:  "this release does not have the PodGroups of scheduling.k8s.io/v1beta1",
			Mend:  "use --mode resources, or --kubernetes " + NewestKubernetes,
		}
	}
	return nil
}

// controlPlane starts the three components of one release of Kubernetes.
type controlPlane struct {
	// version is the release, such as v1.37.2.
	version string
	// folder holds one executable for each component; empty for the multi-call binary.
	folder string
	// multiCall is the executable whose first argument names the component.
	multiCall string
}

// command returns the executable of a component and the arguments before its flags.
func (c controlPlane) command(component string) (binary string, first []string) {
	if c.folder != "" {
		return filepath.Join(c.folder, component), nil
	}
	return c.multiCall, []string{component}
}

// buildKubernetes returns the components of a minor release, and builds them if this version of them is not there.
func buildKubernetes(ctx context.Context, minor string, newest Binaries, report func(string)) (controlPlane, error) {
	if minor == NewestKubernetes {
		return controlPlane{version: KubernetesVersion, multiCall: newest.ControlPlane}, nil
	}
	root, err := sourcetree.Root()
	if err != nil {
		return controlPlane{}, err
	}
	folder := filepath.Join(kubernetesModules, minor)
	version, err := pinned(filepath.Join(root, folder, "go.mod"), "k8s.io/kubernetes")
	if err != nil {
		return controlPlane{}, err
	}
	digest, err := digestOf(root, []string{filepath.Join(folder, "go.mod"), filepath.Join(folder, "go.sum")})
	if err != nil {
		return controlPlane{}, err
	}
	module := goModule{root: filepath.Join(root, folder), flags: []string{"-ldflags", "-s -w " + stamp(version)}}
	dir, err := buildOnce(filepath.Join(root, "bin", "kubernetes", minor), digest, func(dir string) error {
		report("building Kubernetes " + version + " (once; about six minutes on two cores)")
		return goBuild(ctx, module, dir, report, "k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes/cmd/kube-scheduler")
	})
	return controlPlane{version: version, folder: dir}, err
}

// pinned returns the version of a dependency that a go.mod requires.
func pinned(file, module string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading what the cluster is built from: %w", err)
	}
	parsed, err := modfile.ParseLax(file, content, nil)
	if err != nil {
		return "", fmt.Errorf("reading what the cluster is built from: %w", err)
	}
	for _, require := range parsed.Require {
		if require.Mod.Path == module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s requires no %s", file, module)
}

// stamp returns linker flags that stamp a release of Kubernetes. Kueue and JobSet parse the server's version, which a
// module build does not carry.
func stamp(version string) string {
	const at = "-X k8s.io/component-base/version."
	number := strings.Split(strings.TrimPrefix(version, "v"), ".")
	return at + "gitVersion=" + version + " " + at + "gitMajor=" + number[0] + " " + at + "gitMinor=" + number[1]
}
