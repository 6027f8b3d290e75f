package fleet

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/yamlfile"
)

// Default is the fleet that is used when none is named.
const Default = "gb200-72"

// A Fleet is a cluster's nodes.
type Fleet struct {
	Name string
	// Nodes are complete API objects, in the order of their description.
	Nodes []corev1.Node
}

//go:embed fleets/*.yaml
var builtin embed.FS

const builtinFolder = "fleets"

// Names lists the built-in fleets, sorted.
func Names() []string {
	entries, err := fs.ReadDir(builtin, builtinFolder)
	if err != nil {
		return nil // the folder is part of the binary
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yaml"))
	}
	return names
}

// Open returns the built-in fleet of that name, or else reads the file of that path.
func Open(nameOrPath string) (Fleet, error) {
	content, err := Source(nameOrPath)
	if err == nil {
		return Read(nameOrPath, content)
	}
	if _, missing := os.Stat(nameOrPath); errors.Is(missing, fs.ErrNotExist) {
		return Fleet{}, err
	}
	documents, err := yamlfile.ReadFile(nameOrPath)
	if err != nil {
		return Fleet{}, err
	}
	return collect(nameOrPath, documents)
}

// Source is the text of a built-in fleet, which a user may write to a file and change.
func Source(name string) ([]byte, error) {
	content, err := builtin.ReadFile(path.Join(builtinFolder, name+".yaml"))
	if err != nil {
		return nil, &badinput.Error{
			Where: fmt.Sprintf("fleet %q", name),
			What:  "there is no built-in fleet and no file of that name",
			Mend:  "use " + strings.Join(Names(), ", ") + " or the path of a file",
		}
	}
	return content, nil
}

// Read reads a fleet from content, naming file in errors and, where the content has no name, in the fleet's name.
func Read(file string, content []byte) (Fleet, error) {
	documents, err := yamlfile.Read(file, content)
	if err != nil {
		return Fleet{}, err
	}
	return collect(file, documents)
}

// placed is a node and where it was described.
type placed struct {
	node corev1.Node
	from yamlfile.Document
}

func collect(file string, documents []yamlfile.Document) (Fleet, error) {
	fleet := Fleet{}
	var all []placed
	for _, document := range documents {
		items, err := document.Items()
		if err != nil {
			return Fleet{}, err
		}
		for _, item := range items {
			name, nodes, err := read(item)
			if err != nil {
				return Fleet{}, err
			}
			if fleet.Name == "" {
				fleet.Name = name
			}
			all = append(all, nodes...)
		}
	}
	if len(all) == 0 {
		return Fleet{}, badinput.At(file, 0, "the fleet has no node", "describe Nodes or a Fleet with groups")
	}
	if err := unique(all); err != nil {
		return Fleet{}, err
	}
	if fleet.Name == "" {
		fleet.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	for _, one := range all {
		fleet.Nodes = append(fleet.Nodes, one.node)
	}
	return fleet, nil
}

// read turns one object into nodes, and says the fleet's name if the object has one.
func read(document yamlfile.Document) (string, []placed, error) {
	version, _ := document.Content["apiVersion"].(string)
	kind, _ := document.Content["kind"].(string)
	switch {
	case version == "v1" && kind == "Node":
		node, err := readNode(document)
		return "", []placed{{node: node, from: document}}, err
	case version == APIVersion && kind == Kind:
		return readGroups(document)
	case version == "v1" && kind == "List":
		return "", nil, nil // an empty one: Items left nothing else of it
	}
	what := fmt.Sprintf("%s %s is neither a Node nor a Fleet", orNo(version, "apiVersion"), orNo(kind, "kind"))
	mend := fmt.Sprintf("use v1 Node, or %s %s", APIVersion, Kind)
	return "", nil, document.At(what, mend)
}

func orNo(value, field string) string {
	if value == "" {
		return "(no " + field + ")"
	}
	return value
}

// unique refuses two nodes of one name.
func unique(all []placed) error {
	first := make(map[string]yamlfile.Document, len(all))
	for _, one := range all {
		name := one.node.Name
		other, taken := first[name]
		if !taken {
			first[name] = one.from
			continue
		}
		here, there := nameLine(one.from), nameLine(other)
		what := fmt.Sprintf("node %s is described twice, first at %s", name, there)
		mend := "give one of them another name"
		if here == there {
			what = fmt.Sprintf("the group makes node %s more than once", name)
			mend = "use all of its counters in the name"
		}
		return &badinput.Error{Where: here, What: what, Mend: mend}
	}
	return nil
}

// nameLine is where a node's or a group's name stands.
func nameLine(document yamlfile.Document) string {
	if _, isNode := document.Content["metadata"]; isNode {
		return badinput.Position(document.File, document.LineOf("metadata", "name"))
	}
	return badinput.Position(document.File, document.LineOf("name"))
}
