package main

import (
	"path"
	"slices"
	"strings"
)

// concerned returns the folders of packages with tests whose own files changed, or those of a package that they import,
// sorted. A file in a folder without a package, such as testdata, is of the next package around it. Folders of without,
// and those in them, are left out.
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
		if !p.isTested() ||
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
