package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestFeatures_HaveTests fails for a feature without a test or its output, and for a test that is not there.
func TestFeatures_HaveTests(t *testing.T) {
	page, all := text(t, "docs/features.md"), tests(t)
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1) {
		if !all[name[1]] {
			t.Errorf("docs/features.md names %s, which is no test", name[1])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(page, -1)
	features := 0
	for _, row := range rows {
		if row[1] == "feature" || row[1] == "---" {
			continue
		}
		if features++; !strings.Contains(row[2], "`Test") || !strings.Contains(row[3], "](") {
			t.Errorf("docs/features.md shows no test or no output of %s", row[1])
		}
	}
	if features == 0 {
		t.Error("docs/features.md has no feature")
	}
}
