package docs_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

const (
	root = "../../.."
	mend = "go test ./simulator/checks/docs -args -rewrite"
	// played marks the pages whose commands this test runs; other pages have theirs written by tests with a control
	// plane.
	played = "<!-- commands: " + mend + " -->"
)

var rewrite = flag.Bool("rewrite", false, "write outputs, references and quotations into the pages")

// pages returns the README and the pages of docs/, by their paths in the source tree.
func pages(t *testing.T) []string {
	t.Helper()
	paths := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if path = strings.TrimPrefix(path, root+"/"); path != "README.md" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestPages_Commands runs the commands of the pages that are marked for it.
func TestPages_Commands(t *testing.T) {
	count := 0
	for _, path := range pages(t) {
		if !strings.Contains(text(t, path), played) {
			continue
		}
		count++
		t.Run(path, func(t *testing.T) {
			page.Page{File: path, Write: *rewrite, Mend: mend}.Play(t, func(words []string) (out, notes string) {
				var stdout, stderr bytes.Buffer
				cli.Run(t.Context(), words, cli.Environment{Out: &stdout, Err: &stderr, Clock: clock.RealClock{}})
				return stdout.String(), stderr.String()
			})
		})
	}
	if count == 0 {
		t.Error("no page has commands")
	}
}

// TestPages_Quotations compares the quotations of all pages with the files that they are of.
func TestPages_Quotations(t *testing.T) {
	for _, path := range pages(t) {
		page.Page{File: path, Write: *rewrite, Mend: mend}.HasQuotes(t)
	}
}
