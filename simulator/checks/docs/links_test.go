package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// fences are blocks of code, in which nothing is a link.
func withoutFences(markdown string) string {
	return regexp.MustCompile("(?s)(^|\n)(`{3,})[^\n]*\n.*?\n`{3,}").ReplaceAllString(markdown, "")
}

// TestPages_Links fails for a link of a page, or of a room's design, that leads to no file or to no heading.
func TestPages_Links(t *testing.T) {
	paths := pages(t)
	for _, pattern := range []string{"*/*.md", "*/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if path = strings.TrimPrefix(
				path,
				root+"/",
			); !strings.HasPrefix(path, "docs/") &&
				!strings.HasPrefix(path, "bin/") {
				paths = append(paths, path)
			}
		}
	}
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range paths {
		if strings.HasPrefix(path, "out/") {
			continue
		}
		for _, found := range links.FindAllStringSubmatch(withoutFences(text(t, path)), -1) {
			link := found[1]
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			name, anchor, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(path), name)
			if name == "" {
				target = path
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", path, link)
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !headings(text(t, target))[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", path, link, target)
			}
		}
	}
}

// headings returns the anchors of a page's headings.
func headings(markdown string) map[string]bool {
	anchors := map[string]bool{}
	for line := range strings.Lines(withoutFences(markdown)) {
		title := strings.TrimLeft(line, "#")
		if title == line {
			continue
		}
		anchors[slug(strings.TrimSpace(title))] = true
	}
	return anchors
}

// slug returns the anchor of a heading, as GitHub and MkDocs make it.
func slug(title string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			out.WriteRune(r)
		case r == ' ':
			out.WriteRune('-')
		}
	}
	return out.String()
}
