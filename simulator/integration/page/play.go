package page

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// Execute runs a command line of lockstep, without its name, in the working directory. It returns standard output and
// standard error.
type Execute func(words []string) (out, notes string)

// Play runs the page's commands of lockstep in a new directory that has the page's manifests, docs and manifests of the
// source tree, and fails unless the page has their outputs. A manifest is a YAML block whose first line is a comment
// with its name; a block of commands begins with "$ lockstep". Both are taken in the page's order. ">" and ">>" send
// standard output to a file, "2>" standard error; head, tail and grep -v filter standard output.
func (p Page) Play(t *testing.T, execute Execute) {
	t.Helper()
	path, before := p.read(t)
	t.Chdir(workingDirectory(t))
	played := 0
	blocks := regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```|```\n(\\$ lockstep .*?)```")
	after := blocks.ReplaceAllStringFunc(before, func(block string) string {
		found := blocks.FindStringSubmatch(block)
		if found[1] != "" {
			if err := os.WriteFile(filepath.Clean(found[1]), []byte(found[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			return block
		}
		played++
		return "```\n" + session(t, found[3], execute) + "```"
	})
	if played == 0 {
		t.Errorf("%s has no commands", p.File)
	}
	p.settle(t, path, before, after)
}

// workingDirectory returns a new directory that has the source tree's docs and manifests under these names.
func workingDirectory(t *testing.T) string {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"docs", "manifests"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// session runs the commands of a block, which begin with "$ ", and returns the block.
func session(t *testing.T, text string, execute Execute) string {
	t.Helper()
	var block strings.Builder
	for command := range strings.SplitSeq("\n"+text, "\n$ ") {
		if command == "" {
			continue
		}
		line, _, _ := strings.Cut(strings.ReplaceAll(command, "\\\n", "\\\x00"), "\n")
		_, _ = fmt.Fprintf(&block, "$ %s\n", strings.ReplaceAll(line, "\x00", "\n"))
		block.WriteString(shown(t, strings.Fields(strings.ReplaceAll(line, "\\\x00", " ")), execute))
	}
	return block.String()
}

// shown runs a command, carries its redirections out, and returns the output that a terminal would show.
func shown(t *testing.T, words []string, execute Execute) string {
	t.Helper()
	words, filters := cut(words, func(word string) bool { return word == "|" })
	words, redirection := cut(words, func(word string) bool { return strings.HasSuffix(word, ">") })
	out, notes := execute(words[1:])
	for len(filters) > 0 {
		var filter []string
		filter, filters = cut(filters[1:], func(word string) bool { return word == "|" })
		out = filtered(t, out, filter)
	}
	if len(redirection) == 0 {
		return out + notes
	}
	switch file := redirection[1]; redirection[0] {
	case ">":
		write(t, file, out, os.O_TRUNC)
		return notes
	case ">>":
		write(t, file, out, os.O_APPEND)
		return notes
	default: // 2>
		write(t, file, notes, os.O_TRUNC)
		return out
	}
}

// cut returns the words before the first one for which is holds, and the others.
func cut(words []string, is func(string) bool) (before, after []string) {
	if i := slices.IndexFunc(words, is); i >= 0 {
		return words[:i], words[i:]
	}
	return words, nil
}

// filtered returns the lines that a filter passes on: head -N, tail -N, or grep -v with -e WORD for each word of lines
// to leave out.
func filtered(t *testing.T, text string, filter []string) string {
	t.Helper()
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(filter[1], "-"))
	switch {
	case filter[0] == "head" && err == nil:
		lines = lines[:min(n, len(lines))]
	case filter[0] == "tail" && err == nil:
		lines = lines[max(0, len(lines)-n):]
	case filter[0] == "grep" && filter[1] == "-v":
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return slices.ContainsFunc(
				filter[2:],
				func(word string) bool { return word != "-e" && strings.Contains(line, word) },
			)
		})
	default:
		t.Fatalf("the filter %v is not known", filter)
	}
	return strings.TrimSuffix(strings.Join(lines, ""), "\n") + "\n"
}

func write(t *testing.T, path, text string, how int) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}

// HasQuotes fails the test unless the page's quotations agree with their files. A quotation is a marker with the path
// of a file of the source tree, the beginning of a line there and a number of lines, and a fenced text; several such
// pieces are joined by "...":
//
//	<!-- quote PATH: "BEGINNING" N, "BEGINNING" N -->
func (p Page) HasQuotes(t *testing.T) {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, before := p.read(t)
	quotes := regexp.MustCompile("(?s)(<!-- quote (\\S+): ([^\n]*) -->\n```[a-z]*\n).*?```\n")
	after := quotes.ReplaceAllStringFunc(before, func(quote string) string {
		found := quotes.FindStringSubmatch(quote)
		source, err := os.ReadFile(filepath.Join(root, found[2]))
		if err != nil {
			t.Errorf("%s: %v", p.File, err)
			return quote
		}
		var pieces []string
		for _, piece := range regexp.MustCompile(`"([^"]*)" (\d+)`).FindAllStringSubmatch(found[3], -1) {
			n, _ := strconv.Atoi(piece[2])
			text, ok := excerpt(string(source), piece[1], n)
			if !ok {
				t.Errorf("%s: %s has no %d lines from %q on", p.File, found[2], n, piece[1])
				return quote
			}
			pieces = append(pieces, text)
		}
		return found[1] + strings.Join(pieces, "...\n") + "```\n"
	})
	p.settle(t, path, before, after)
}

// excerpt returns lines of a text, from the first one with a beginning on.
func excerpt(text, beginning string, lines int) (string, bool) {
	all := strings.SplitAfter(text, "\n")
	for i, line := range all {
		if strings.HasPrefix(strings.TrimSpace(line), strings.TrimSpace(beginning)) && i+lines <= len(all) {
			return strings.Join(all[i:i+lines], ""), true
		}
	}
	return "", false
}
