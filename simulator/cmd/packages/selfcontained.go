package main

import "slices"

// starter is the package by which a test starts a program: what that prints depends on more than the test's own code
// and files.
const starter = "os/exec"

// selfContained returns the folders of packages with tests that start no program, neither themselves nor by another
// package of the module, in the order of all; and those of the others with tests.
func selfContained(all []pkg) (alone, others []string) {
	index := make(map[string]*pkg, len(all))
	for i := range all {
		index[all[i].ImportPath] = &all[i]
	}
	known := map[string]bool{}
	var starts func(imports []string) bool
	starts = func(imports []string) bool {
		return slices.ContainsFunc(imports, func(path string) bool {
			if path == starter {
				return true
			}
			found, seen := known[path]
			if p := index[path]; p != nil && !seen {
				found = starts(p.Imports)
				known[path] = found
			}
			return found
		})
	}
	for _, p := range all {
		switch {
		case !p.isTested():
		case starts(slices.Concat(p.Imports, p.TestImports, p.XTestImports)):
			others = append(others, p.Dir)
		default:
			alone = append(alone, p.Dir)
		}
	}
	return alone, others
}
