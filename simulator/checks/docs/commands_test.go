package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPages_NameCommands fails for a make target, a package or a test that a page names and that is not there.
func TestPages_NameCommands(t *testing.T) {
	targets := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(text(t, "Makefile"), -1) {
		targets[found[1]] = true
	}
	inCode := regexp.MustCompile("(?s)```[a-z]*\n(.*?)```|`([^`\n]+)`")
	for _, path := range pages(t) {
		for _, found := range inCode.FindAllStringSubmatch(text(t, path), -1) {
			for line := range strings.Lines(found[1] + found[2]) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
				words := strings.Fields(line)
				switch {
				case len(words) > 1 && words[0] == "make":
					for _, word := range words[1:] {
						if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") && !targets[word] {
							t.Errorf("%s names make %s, which is no target", path, word)
						}
					}
				case len(words) > 2 && words[0] == "go" && words[1] == "test":
					checkTests(t, path, words[2:])
				}
			}
		}
	}
}

// checkTests fails for a package without a folder, and for a pattern that no test of the package matches.
func checkTests(t *testing.T, page string, words []string) {
	t.Helper()
	var folders []string
	pattern := ""
	for i, word := range words {
		if strings.HasPrefix(word, "./") {
			folders = append(folders, strings.TrimSuffix(word, "/..."))
		}
		if (word == "-run" || word == "-bench") && i+1 < len(words) {
			if p := strings.Trim(words[i+1], "'\""); p != "^$" {
				pattern = p
			}
		}
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if _, missing := os.Stat(filepath.Join(root, folder)); err != nil || missing != nil {
			t.Errorf("%s names %s, which is no folder", page, folder)
			continue
		}
		if pattern == "" || pattern == "." {
			continue
		}
		wanted, err := regexp.Compile(strings.Split(pattern, "/")[0])
		if err != nil {
			t.Errorf("%s names tests %s: %v", page, pattern, err)
			continue
		}
		if !matches(t, files, wanted) {
			t.Errorf("%s names tests %s of %s, which are not there", page, pattern, folder)
		}
	}
}

// matches reports whether a test or benchmark of the files has a name that matches.
func matches(t *testing.T, files []string, wanted *regexp.Regexp) bool {
	t.Helper()
	names := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range names.FindAllSubmatch(content, -1) {
			if wanted.Match(found[1]) {
				return true
			}
		}
	}
	return false
}
