package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// typed are the outputs that no test writes, by their pages and first words, with the check that replaces the writing.
func typed() map[[2]string]string {
	return map[[2]string]string{
		{"docs/dialects.md", "  its pods are marked"}:      "TestExplain_SaysWhichMarkWasRead has both lines",
		{"docs/install.md", "$ lockstep doctor"}:           "printed by make e2e-install on two real nodes, which need root and twenty minutes",
		{"docs/kueue.md", "Evicted due to AdmissionCheck"}: "TestAdmissionCheck_GangMovesToTheRackWithRoom looks for its words on a cluster with Kueue",
		{"docs/pod-security.md", "  namespace team"}:       "TestRestricted_RefusedPodsAreTold looks for its words",
		{"docs/where-is-my-job.md", "Warning:"}:            "TestWarnings_ResourcesThatNoNodeOffers looks for its words",
	}
}

// TestPages_OutputsAreWritten fails for an output that no test writes and that is not listed as such. Blocks with a
// language are inputs.
func TestPages_OutputsAreWritten(t *testing.T) {
	exceptions := typed()
	blocks := regexp.MustCompile("(?m)^(.*)\n[ ]*```\n((?s:.*?))[ ]*```$")
	for _, path := range pages(t) {
		content := text(t, path)
		writes := strings.Contains(content, played) || path == "docs/moving-in.md" // its test is in simulator/cli
		for _, block := range blocks.FindAllStringSubmatch(unfenced(content), -1) {
			marked := strings.HasPrefix(block[1], "<!-- ")
			if marked || writes && strings.HasPrefix(block[2], "$ lockstep ") {
				continue
			}
			if !listed(exceptions, path, block[2]) {
				line, _, _ := strings.Cut(block[2], "\n")
				t.Errorf("%s shows an output that no test writes: %s", path, line)
			}
		}
	}
	for key := range exceptions { // those that were met are deleted
		t.Errorf("%s has no output that begins with %q any more", key[0], key[1])
	}
}

// The tests that the list of such outputs names are there.
func TestPages_OutputsAreChecked(t *testing.T) {
	all := tests(t)
	for key, reason := range typed() {
		if name := regexp.MustCompile(`Test\w+`).FindString(reason); name != "" && !all[name] {
			t.Errorf("an output of %s names %s, which is no test", key[0], name)
		}
	}
}

// tests returns the names of all tests of the source tree.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() &&
			(name == "out" || name == "bin" || strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(content, -1) {
			names[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestReadme_SaysTheLosses holds the first figure of the README to that of the benchmark.
func TestReadme_SaysTheLosses(t *testing.T) {
	losses := regexp.MustCompile(`(?m)^\*\*(In \d+ of \d+ simulated workloads [^*]*)\*\*`).
		FindStringSubmatch(text(t, "docs/benchmarks.md"))
	if losses == nil {
		t.Fatal("docs/benchmarks.md does not say in how many comparisons Lockstep misses a figure")
	}
	page.Page{
		File:   "README.md",
		Marker: "go test ./simulator/checks/docs",
		Write:  *rewrite,
		Mend:   mend,
	}.HasSection(
		t,
		"losses",
		losses[1]+"\n",
	)
}

// TestReadme_IsAFrontPage holds the README to its size and to the two commands.
func TestReadme_IsAFrontPage(t *testing.T) {
	const most = 6 << 10
	content := text(t, "README.md")
	if len(content) > most {
		t.Errorf("README.md has %d bytes, want at most %d: move what a task needs to its page", len(content), most)
	}
	for _, command := range []string{"\nmake run ", "\nmake test ", "\nhelm install "} {
		if !strings.Contains(content, command) {
			t.Errorf("README.md has no command %s", strings.TrimSpace(command))
		}
	}
}

// listed reports whether an output is an exception, and takes it off the list.
func listed(exceptions map[[2]string]string, path, output string) bool {
	for key := range exceptions {
		if key[0] == path && strings.HasPrefix(output, key[1]) {
			delete(exceptions, key)
			return true
		}
	}
	return false
}

// unfenced returns a page without its blocks that have a language.
func unfenced(markdown string) string {
	return regexp.MustCompile("(?m)^[ ]*```[a-z]+\n(?s:.*?)^[ ]*```$").ReplaceAllString(markdown, "")
}
