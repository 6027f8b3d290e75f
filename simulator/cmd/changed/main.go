// Command changed prints the packages that a change concerns: those with changed files, and those that import them, for make test-fast. It reads
// the names of changed files from standard input, one on each line, and asks go list about the packages of the module.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	without := flag.String("without", "", "folders whose packages are left out, separated by commas")
	flag.Parse()
	if err := run(context.Background(), os.Stdin, os.Stdout, strings.Split(*without, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "changed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, without []string) error {
	var files []string
	for scanner := bufio.NewScanner(in); scanner.Scan(); {
		files = append(files, scanner.Text())
	}
	packages, err := list(ctx)
	if err != nil {
		return err
	}
	for _, dir := range concerned(packages, files, without) {
		if _, err := fmt.Fprintln(out, "./"+dir); err != nil {
			return fmt.Errorf("printing packages: %w", err)
		}
	}
	return nil
}

// pkg is a package of the module.
type pkg struct {
	// Dir is its folder, by slashes, relative to the module.
	Dir, ImportPath                    string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

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

// concerned returns the folders of packages with tests whose own files changed, or those of a package that they import, sorted. A file in a
// folder without a package, such as testdata, is of the next package around it. Folders of without, and those in them, are left out.
func concerned(all []pkg, files, without []string) []string {
	dirs := make(map[string]bool, len(all))
	for _, p := range all {
		dirs[p.Dir] = true
	}
	changed := map[string]bool{}
	for _, file := range files {
		for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if dirs[dir] {
				changed[dir] = true
				break
			}
		}
	}
	imported := map[string]bool{}
	for _, p := range all {
		if changed[p.Dir] {
			imported[p.ImportPath] = true
		}
	}
	var found []string
	for _, p := range all {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 ||
			slices.ContainsFunc(without, func(w string) bool { return within(p.Dir, w) }) {
			continue
		}
		uses := func(importPath string) bool { return imported[importPath] }
		if changed[p.Dir] || slices.ContainsFunc(slices.Concat(p.Imports, p.TestImports, p.XTestImports), uses) {
			found = append(found, p.Dir)
		}
	}
	slices.Sort(found)
	return found
}

// within reports whether a folder is another or in it.
func within(dir, folder string) bool {
	return folder != "" && (dir == folder || strings.HasPrefix(dir, folder+"/"))
}
