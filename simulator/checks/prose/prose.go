package prose

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Finding is a phrase of a file that the rules replace.
type Finding struct {
	File   string
	Line   int // from 1
	Phrase string
	Mend   string
}

// String returns the finding as compilers print theirs.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %q: %s", f.File, f.Line, f.Phrase, f.Mend)
}

// errSyntax is returned for Go files that cannot be parsed.
var errSyntax = errors.New("not a Go file")

// Check returns the findings of a file in the order of its lines: of comments and messages of Go, of comments of shell
// scripts and YAML, of Markdown without its code. Files of other kinds have none.
func Check(name string, source []byte) ([]Finding, error) {
	var texts []text
	switch filepath.Ext(name) {
	case ".go":
		var err error
		if texts, err = ofGo(name, source); err != nil {
			return nil, err
		}
	case ".sh", ".yaml", ".yml":
		texts = ofScript(string(source))
	case ".md":
		texts = ofMarkdown(string(source))
	}
	all := rules()
	var found []Finding
	for _, t := range texts {
		for _, r := range all {
			if t.message && !r.messages || r.comments && filepath.Ext(name) != ".go" {
				continue
			}
			for _, at := range r.pattern.FindAllStringIndex(t.joined(), -1) {
				found = append(
					found,
					Finding{File: name, Line: t.line(at[0]), Phrase: t.joined()[at[0]:at[1]], Mend: r.mend},
				)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

// text is a run of lines that belong together, so that a phrase is found across their ends.
type text struct {
	first   int // line of the first one
	lines   []string
	message bool
}

func (t text) joined() string { return strings.Join(t.lines, " ") }

// line returns the line of an offset into the joined text.
func (t text) line(offset int) int {
	for i, l := range t.lines {
		if offset <= len(l) {
			return t.first + i
		}
		offset -= len(l) + 1
	}
	return t.first + len(t.lines) - 1
}

// ofGo returns a file's comments and, outside tests, its string literals of several words.
func ofGo(name string, source []byte) ([]text, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, errSyntax, err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var texts []text
	for _, group := range file.Comments {
		for _, comment := range group.List {
			texts = joinComment(texts, files.Position(comment.Pos()).Line, comment.Text)
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return texts, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Contains(l.Value, " ") {
			if value, err := strconv.Unquote(l.Value); err == nil {
				lines := strings.Split(value, "\n")
				texts = append(texts, text{first: files.Position(l.Pos()).Line, lines: lines, message: true})
			}
		}
		return true
	})
	return texts, nil
}

// joinComment adds a comment: to the text before if it is on the next line. A blank comment line ends a text.
func joinComment(texts []text, line int, comment string) []text {
	for i, l := range strings.Split(comment, "\n") {
		l = strings.TrimSpace(strings.Trim(strings.TrimSpace(l), "/*"))
		at := line + i
		last := len(texts) - 1
		switch {
		case l == "":
		case last >= 0 && texts[last].first+len(texts[last].lines) == at:
			texts[last].lines = append(texts[last].lines, l)
		default:
			texts = append(texts, text{first: at, lines: []string{l}})
		}
	}
	return texts
}

// ofScript returns the lines that are comments only.
func ofScript(source string) []text {
	var texts []text
	for i, l := range strings.Split(source, "\n") {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "#") {
			texts = joinComment(texts, i+1, strings.TrimLeft(l, "# "))
		}
	}
	return texts
}

// ofMarkdown returns paragraphs. Code, in blocks and in lines, is left out.
func ofMarkdown(source string) []text {
	var texts []text
	block := false
	for i, l := range strings.Split(source, "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			block = !block
			continue
		}
		if block {
			continue
		}
		parts := strings.Split(l, "`")
		for j := 1; j < len(parts); j += 2 {
			parts[j] = ""
		}
		texts = joinComment(texts, i+1, strings.Join(parts, "`"))
	}
	return texts
}
