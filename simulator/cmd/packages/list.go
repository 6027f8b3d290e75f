package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is a package of the module.
type pkg struct {
	// Dir is its folder, by slashes, relative to the module.
	Dir, ImportPath                    string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// isTested reports whether the package has tests.
func (p *pkg) isTested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// list asks go list about all packages of the module.
func list(ctx context.Context) ([]pkg, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...").
		Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the module: %w", err)
	}
	var all []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading packages: %w", err)
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, fmt.Errorf("reading packages: %w", err)
		}
		p.Dir = filepath.ToSlash(dir)
		all = append(all, p)
	}
}
