package yamlfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// A Document is one YAML document, or one item of a list, and where it stands.
type Document struct {
	// File is the path as the user gave it.
	File string
	// Line is the line of the document's first word, counted from 1.
	Line int
	// Content is the document's content: maps, slices, strings, booleans, int64 and float64.
	Content map[string]any

	source chunk
	prefix []any // the path of this item within the chunk
}

// ReadFile reads all documents of a file. Blank documents are left out; a file with nothing else is refused.
func ReadFile(path string) ([]Document, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return Read(path, content)
}

// Read reads all documents of content, naming file in errors.
func Read(file string, content []byte) ([]Document, error) {
	var documents []Document
	for _, source := range split(content) {
		line := source.firstLine()
		if line == 0 {
			continue
		}
		said, err := parse(file, line, source)
		if err != nil {
			return nil, err
		}
		if said != nil {
			documents = append(documents, Document{File: file, Line: line, Content: said, source: source})
		}
	}
	if len(documents) == 0 {
		return nil, badinput.At(file, 0, "the file holds no document", "write at least one Kubernetes object into it")
	}
	return documents, nil
}

// Items returns the items of a List as documents of their own, and any other document unchanged.
func (d Document) Items() ([]Document, error) {
	kind, _ := d.Content["kind"].(string)
	if _, isList := d.Content["items"].([]any); !isList || !strings.HasSuffix(kind, "List") {
		return []Document{d}, nil
	}
	return d.Elements("items")
}

// Elements returns the objects of the list at a path of keys as documents of their own.
func (d Document) Elements(keys ...string) ([]Document, error) {
	list, _, err := unstructured.NestedFieldNoCopy(d.Content, keys...)
	if err != nil {
		return nil, d.At(strings.Join(keys, ".")+" is not there", "write it as a list of objects", anys(keys)...)
	}
	elements, isList := list.([]any)
	if !isList && list != nil {
		return nil, d.At(strings.Join(keys, ".")+" is not a list", "write it as a list of objects", anys(keys)...)
	}
	root := d.root()
	documents := make([]Document, 0, len(elements))
	for i, element := range elements {
		path := slices.Concat(d.prefix, anys(keys), []any{i})
		line := d.source.lineOf(root, path)
		said, isMap := element.(map[string]any)
		if !isMap {
			what := fmt.Sprintf("%s[%d] is not an object", strings.Join(keys, "."), i)
			return nil, badinput.At(d.File, line, what, "write its fields below it")
		}
		documents = append(documents, Document{File: d.File, Line: line, Content: said, source: d.source, prefix: path})
	}
	return documents, nil
}

func anys(keys []string) []any {
	path := make([]any, len(keys))
	for i, key := range keys {
		path[i] = key
	}
	return path
}

// Where is the place of the document as file:line.
func (d Document) Where() string {
	return badinput.Position(d.File, d.Line)
}

// LineOf is the line of the part of the document at path, whose elements are keys (string) and indexes (int). It is
// the line of the nearest part that exists when that one does not.
func (d Document) LineOf(path ...any) int {
	return d.source.lineOf(d.root(), slices.Concat(d.prefix, path))
}

// At returns the error that the part at path is wrong.
func (d Document) At(what, mend string, path ...any) *badinput.Error {
	return badinput.At(d.File, d.LineOf(path...), what, mend)
}

func (d Document) root() *yamlv3.Node {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.source.text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	return root.Content[0]
}

// lineOf follows path below node as far as it exists.
func (c chunk) lineOf(node *yamlv3.Node, path []any) int {
	if node == nil {
		return c.firstLine()
	}
	line := node.Line
	for _, step := range path {
		child, at := descend(node, step)
		if child == nil {
			break
		}
		node, line = child, at
	}
	return c.before + line
}

// descend returns a child of node and the line for a reader: the key's, for a map.
func descend(node *yamlv3.Node, step any) (*yamlv3.Node, int) {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	switch step := step.(type) {
	case string:
		for i := 0; node.Kind == yamlv3.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case int:
		if node.Kind == yamlv3.SequenceNode && step < len(node.Content) {
			return node.Content[step], node.Content[step].Line
		}
	}
	return nil, 0
}

func parse(file string, line int, source chunk) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(source.text)
	if err != nil {
		return nil, syntaxError(file, line, source, err)
	}
	var said any
	if err := utiljson.Unmarshal(asJSON, &said); err != nil {
		return nil, badinput.At(file, line, "the document cannot be read: "+err.Error(), "write plain YAML or JSON")
	}
	switch said := said.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return said, nil
	default:
		return nil, badinput.At(file, line, "the document is not an object", "write apiVersion, kind and metadata")
	}
}

var (
	// yamlLine finds the line that the YAML parser speaks of, which counts from the document's first.
	yamlLine = regexp.MustCompile(`\bline (\d+): `)
	// shortOfLine matches the parser's messages that count lines from 0; about single characters it counts from 1.
	shortOfLine = regexp.MustCompile(`did not find expected ('-' indicator|',' or|key|node content|<)`)
)

// syntaxError moves the parser's line into the error's place.
func syntaxError(file string, line int, source chunk, err error) error {
	what := err.Error()
	for _, noise := range []string{"error converting YAML to JSON: ", "yaml: unmarshal errors:", "yaml: "} {
		what = strings.TrimSpace(strings.Replace(what, noise, "", 1))
	}
	what, _, _ = strings.Cut(what, "\n")
	if found := yamlLine.FindStringSubmatch(what); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil {
			line = source.before + n
		}
		if shortOfLine.MatchString(what) {
			line++
		}
		what = strings.Replace(what, found[0], "", 1)
	}
	return badinput.At(file, line, "not YAML: "+what, "mend the syntax there or just above")
}

// unreadable explains why a path could not be read, in words that do not repeat the path.
func unreadable(path string, err error) error {
	what, mend := "the file cannot be read", "make it readable"
	var reason *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what, mend = "there is no such file or folder", "check the path"
	case errors.As(err, &reason):
		what += ": " + reason.Err.Error()
	}
	return badinput.At(path, 0, what, mend)
}
