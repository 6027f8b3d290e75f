package yamlfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

const several = `# a comment, then a separator
---
kind: One
list:
- name: a
- name: b
  deep: {on: on}
---
# nothing here
--- # a remark on the separator
kind: Two
text: |
  --- indented, not a separator
...
{"kind": "Three"}
`

func TestRead_DocumentsKnowTheirLines(t *testing.T) {
	documents := mustRead(t, several)
	if len(documents) != 3 {
		t.Fatalf("got %d documents, want 3", len(documents))
	}
	var lines []int
	for _, document := range documents {
		lines = append(lines, document.Line)
	}
	if diff := cmp.Diff([]int{3, 11, 15}, lines); diff != "" {
		t.Errorf("lines of documents (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		name     string
		document int
		path     []any
		want     int
	}{
		{name: "key", document: 0, path: []any{"list"}, want: 4},
		{name: "item", document: 0, path: []any{"list", 1}, want: 6},
		{name: "key in item", document: 0, path: []any{"list", 1, "deep", "on"}, want: 7},
		{name: "missing part: the nearest", document: 0, path: []any{"list", 1, "color"}, want: 6},
		{name: "missing item: the list", document: 0, path: []any{"list", 9}, want: 4},
		{name: "nothing: the document", document: 1, want: 11},
		{name: "second document", document: 1, path: []any{"text"}, want: 12},
		{name: "JSON after the end mark", document: 2, path: []any{"kind"}, want: 15},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := documents[tc.document].LineOf(tc.path...); got != tc.want {
				t.Errorf("line %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRead_ContentAsKubectlReadsIt(t *testing.T) {
	got := mustRead(t, "\xef\xbb\xbfon: on\r\ncount: 3\r\nshare: 0.5\r\ntext: \"on\"\r\n")[0].Content
	want := map[string]any{"true": true, "count": int64(3), "share": 0.5, "text": "on"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestItems_OfAList(t *testing.T) {
	document := mustRead(t, "kind: NodeList\nitems:\n- kind: A\n- spec:\n    n: 1\n")[0]
	items, err := document.Items()
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 2 || items[0].Line != 3 || items[1].Line != 4 || items[1].LineOf("spec", "n") != 5 {
		t.Errorf("items stand at the wrong lines: %+v", items)
	}
	one := mustRead(t, "kind: Node\nitems: []\n")[0]
	if items, err := one.Items(); err != nil || len(items) != 1 || items[0].Line != 1 {
		t.Errorf("an object that is no list came apart: %+v, %v", items, err)
	}
}

type shape struct {
	Kind string `json:"kind"`
	List []struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	} `json:"list"`
}

func TestRead_RefusesBadInput(t *testing.T) {
	decode := func(content string) error {
		documents, err := yamlfile.Read("f.yaml", []byte(content))
		if err != nil {
			return err
		}
		return documents[0].Decode(&shape{})
	}
	for _, tc := range []struct{ name, content, want string }{
		{
			name: "empty", content: "# nothing\n---\n",
			want: "f.yaml: the file holds no document; write at least one Kubernetes object into it",
		},
		{
			name: "syntax in the second document", content: "kind: A\n---\nkind: B\nlist: [a\nnext: b\n",
			want: "f.yaml:5: not YAML: did not find expected ',' or ']'; mend the syntax there or just above",
		},
		{
			name: "tab", content: "---\nkind: A\nlist:\n\t- a\n",
			want: "f.yaml:4: not YAML: found character that cannot start any token; mend the syntax there or just above",
		},
		{
			name: "key twice", content: "kind: A\n---\nkind: B\nlist: []\nkind: C\n",
			want: `f.yaml:5: not YAML: key "kind" already set in map; mend the syntax there or just above`,
		},
		{
			name: "a list", content: "\n\n- a\n",
			want: "f.yaml:3: the document is not an object; write apiVersion, kind and metadata",
		},
		{
			name: "unknown field", content: "kind: A\nlist:\n- name: a\n- nam: b\n",
			want: `f.yaml:4: unknown field "list[1].nam"; remove it or mend its name`,
		},
		{
			name: "wrong type", content: "kind: A\nlist:\n- name: a\n  size: big\n",
			want: "f.yaml:2: list.size is of the wrong type: string; write a value of type int",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := decode(tc.content)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if !badinput.Is(err) {
				t.Errorf("%T is not bad input", err)
			}
		})
	}
}

func TestReadFile_RefusesBadPaths(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "none.yaml")
	for path, want := range map[string]string{
		missing: "there is no such file or folder; check the path",
		folder:  "the file cannot be read: is a directory; make it readable",
	} {
		if _, err := yamlfile.ReadFile(path); err == nil || err.Error() != path+": "+want {
			t.Errorf("got  %v\nwant %s: %s", err, path, want)
		}
	}
	good := filepath.Join(folder, "good.yaml")
	if err := os.WriteFile(good, []byte("kind: A"), 0o600); err != nil {
		t.Fatal(err)
	}
	documents, err := yamlfile.ReadFile(good)
	if err != nil || len(documents) != 1 || !strings.HasSuffix(documents[0].Where(), "good.yaml:1") {
		t.Errorf("got %+v, %v", documents, err)
	}
}

func mustRead(t *testing.T, content string) []yamlfile.Document {
	t.Helper()
	documents, err := yamlfile.Read("f.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return documents
}
