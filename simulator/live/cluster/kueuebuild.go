package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

const (
	// kueueModule is the folder of the module that pins Kueue. Kueue links Kubeflow Trainer 2.2, which does not compile
	// with our release of Kubernetes, so that it cannot be a dependency of ours.
	kueueModule = "simulator/live/cluster/kueue"
	// kueueTag leaves the scheduler's simulation out of Kueue: its module is not in Go's checksum database.
	kueueTag = "exclude_scheduler_library"
)

// addKueue builds Kueue if this version of it is not there.
func (b *Binaries) addKueue(ctx context.Context, report func(string)) error {
	root, err := sourcetree.Root()
	if err != nil {
		return err
	}
	digest, err := digestOf(root, []string{
		filepath.Join(kueueModule, "go.mod"), filepath.Join(kueueModule, "go.sum"),
	})
	if err != nil {
		return err
	}
	module := goModule{root: filepath.Join(root, kueueModule), flags: []string{"-tags", kueueTag}}
	dir, err := buildOnce(filepath.Join(root, "bin", "kueue"), digest, func(dir string) error {
		report("building Kueue (once; about five minutes on two cores)")
		if err := goBuild(ctx, module, dir, report, "sigs.k8s.io/kueue/cmd/kueue"); err != nil {
			return err
		}
		return copyKueueManifests(ctx, module.root, dir)
	})
	if err != nil {
		return err
	}
	b.Kueue, b.KueueManifests = filepath.Join(dir, "kueue"), dir
	return nil
}

// copyKueueManifests copies Kueue's manifests into the folder of its binary: one file of CRDs, one of roles, one of
// webhooks.
func copyKueueManifests(ctx context.Context, module, dir string) error {
	folder, err := moduleFolder(ctx, module, "sigs.k8s.io/kueue")
	if err != nil {
		return err
	}
	for _, kept := range []struct {
		as   string
		from []string
	}{
		{kueueCRDs, []string{"crd/bases/*.yaml"}},
		{kueueRoles, []string{
			"rbac/role.yaml", "rbac/role_binding.yaml", "rbac/manager_secrets_role.yaml",
			"rbac/manager_secrets_role_binding.yaml",
		}},
		{kueueWebhooks, []string{"webhook/manifests.yaml"}},
	} {
		content, err := JoinFiles(filepath.Join(folder, "config", "components"), kept.from...)
		if err != nil {
			return fmt.Errorf("reading Kueue's manifests: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, kept.as), content, 0o644); err != nil {
			return fmt.Errorf("keeping Kueue's manifests: %w", err)
		}
	}
	return nil
}

// JoinFiles makes one YAML stream of files below a folder. A pattern that matches none is an error: the manifests have
// moved.
func JoinFiles(folder string, patterns ...string) ([]byte, error) {
	var parts [][]byte
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", pattern, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s has no %s", folder, pattern)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			parts = append(parts, content)
		}
	}
	return bytes.Join(parts, []byte("\n---\n")), nil
}
