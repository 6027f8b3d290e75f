package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestSite_HasAllPages fails for a page of docs/ that the site's navigation lacks, and for one of the navigation that
// is not there. make docs, which needs a network once, fails for the same.
func TestSite_HasAllPages(t *testing.T) {
	_, list, _ := strings.Cut(text(t, "mkdocs.yml"), "\nnav:\n")
	listed := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)(\S+\.md)$`).FindAllStringSubmatch(list, -1) {
		listed["docs/"+found[1]] = true
	}
	for _, path := range pages(t) {
		if strings.HasPrefix(path, "docs/") && !listed[path] {
			t.Errorf("%s is not in the navigation: add it to nav of mkdocs.yml", path)
		}
		delete(listed, path)
	}
	for path := range listed {
		t.Errorf("mkdocs.yml names %s, which is not there", path)
	}
}
