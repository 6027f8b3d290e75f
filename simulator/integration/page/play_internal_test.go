package page

import (
	"os"
	"strings"
	"testing"
)

// echo prints its words in capitals on standard output, one a line, and their number on standard error.
func echo(words []string) (out, notes string) {
	return strings.ToUpper(strings.Join(words, "\n")) + "\n", strings.Repeat("!", len(words)) + "\n"
}

func TestSession(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"an output is replaced", "$ lockstep a b\nold\nlines\n", "$ lockstep a b\nA\nB\n!!\n"},
		{"commands follow each other", "$ lockstep a\n$ lockstep b\nold\n", "$ lockstep a\nA\n!\n$ lockstep b\nB\n!\n"},
		{"a command of two lines", "$ lockstep a \\\n  b\nold\n", "$ lockstep a \\\n  b\nA\nB\n!!\n"},
		{"the first lines", "$ lockstep a b c | head -2\n", "$ lockstep a b c | head -2\nA\nB\n!!!\n"},
		{"the last line", "$ lockstep a b c | tail -1\n", "$ lockstep a b c | tail -1\nC\n!!!\n"},
		{"some lines", "$ lockstep a b c | grep -v -e A -e C\n", "$ lockstep a b c | grep -v -e A -e C\nB\n!!!\n"},
		{"standard output to a file", "$ lockstep a > out.txt\n", "$ lockstep a > out.txt\n!\n"},
		{"standard error to a file", "$ lockstep a b 2> notes.txt | tail -1\n", "$ lockstep a b 2> notes.txt | tail -1\nB\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if have := session(t, test.text, echo); have != test.want {
				t.Errorf("the block is\n%s\nwant\n%s", have, test.want)
			}
		})
	}
}

// A second command adds to the file of the first one.
func TestSession_Files(t *testing.T) {
	t.Chdir(t.TempDir())
	session(t, "$ lockstep a > all.txt\n$ lockstep b >> all.txt\n$ lockstep c 2> notes.txt\n", echo)
	for name, want := range map[string]string{"all.txt": "A\nB\n", "notes.txt": "!\n"} {
		if content, err := os.ReadFile(name); err != nil || string(content) != want {
			t.Errorf("%s has %q, want %q (%v)", name, content, want, err)
		}
	}
}

func TestExcerpt(t *testing.T) {
	const text = "one\n  two\nthree\n"
	for _, test := range []struct {
		beginning string
		lines     int
		want      string
		found     bool
	}{
		{"one", 1, "one\n", true},
		{"tw", 2, "  two\nthree\n", true},
		{"three", 3, "", false},
		{"four", 1, "", false},
	} {
		if have, found := excerpt(text, test.beginning, test.lines); have != test.want || found != test.found {
			t.Errorf("%d lines from %q are %q, %v", test.lines, test.beginning, have, found)
		}
	}
}

// Blocks of other markers, and those of this marker that are not recorded, stay.
func TestReplaced(t *testing.T) {
	const before = "<!-- make a: x -->\n```\nold\n```\n<!-- make a: y -->\n```\nold\n```\n<!-- make b: x -->\n```\nold\n```\n"
	after, used := Page{Marker: "make a"}.replaced(before, map[string]string{"x": "new"})
	if want := strings.Replace(before, "old", "new", 1); after != want {
		t.Errorf("the page is\n%s\nwant\n%s", after, want)
	}
	if len(used) != 2 || !used["x"] || !used["y"] {
		t.Errorf("its blocks are %v", used)
	}
}
