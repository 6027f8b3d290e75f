package fleet

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// Default is the fleet that is used when none is named.
const Default = "gb200-72"

// A Fleet is a cluster's nodes, and the devices that DRA drivers publish on them.
type Fleet struct {
	Name string
	// About describes the fleet in a few words; empty if its description does not.
	About string
	// Nodes are complete API objects, in the order of their description.
	Nodes []corev1.Node
	// Slices are the nodes' devices, in the order of their description, without owners.
	Slices []resourcev1.ResourceSlice
	// Classes are the DeviceClasses by which the devices are requested, sorted by name.
	Classes []resourcev1.DeviceClass
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
	slices.Sort(names) // as files, "c1-x.yaml" precedes "c1.yaml"
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

// content is the content of some documents.
type content struct {
	name, about string
	nodes       []placed
	slices      []published
	classes     []class
	// drivers are those of the models, whose classes are included.
	drivers []string
}

// add merges other descriptions; the first name counts.
func (c *content) add(other content) {
	if c.name == "" {
		c.name, c.about = other.name, other.about
	}
	c.nodes = append(c.nodes, other.nodes...)
	c.slices = append(c.slices, other.slices...)
	c.classes = append(c.classes, other.classes...)
	c.drivers = append(c.drivers, other.drivers...)
}

func collect(file string, documents []yamlfile.Document) (Fleet, error) {
	var all content
	for _, document := range documents {
		items, err := document.Items()
		if err != nil {
			return Fleet{}, err
		}
		for _, item := range items {
			one, err := read(item)
			if err != nil {
				return Fleet{}, err
			}
			all.add(one)
		}
	}
	if len(all.nodes) == 0 {
		return Fleet{}, badinput.At(file, 0, "the fleet has no node", "describe Nodes or a Fleet with groups")
	}
	if err := all.check(); err != nil {
		return Fleet{}, err
	}
	return all.fleet(file), nil
}

// check rejects conflicts between documents.
func (c *content) check() error {
	if err := unique(c.nodes); err != nil {
		return err
	}
	if err := checkSlices(c.slices, c.nodes); err != nil {
		return err
	}
	if err := checkClasses(c.classes); err != nil {
		return err
	}
	return c.countedOnce()
}

// fleet is the content as a value, called like the file if it has no name.
func (c *content) fleet(file string) Fleet {
	fleet := Fleet{Name: c.name, About: c.about, Classes: c.allClasses()}
	if fleet.Name == "" {
		fleet.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	for _, one := range c.nodes {
		fleet.Nodes = append(fleet.Nodes, one.node)
	}
	for _, one := range c.slices {
		fleet.Slices = append(fleet.Slices, one.slice)
	}
	return fleet
}

// read parses one object.
func read(document yamlfile.Document) (content, error) {
	version, _ := document.Content["apiVersion"].(string)
	kind, _ := document.Content["kind"].(string)
	switch version + " " + kind {
	case "v1 Node":
		node, err := readNode(document)
		return content{nodes: []placed{{node: node, from: document}}}, err
	case resourceVersion + " ResourceSlice":
		slice, err := readSlice(document)
		return content{slices: []published{{slice: slice, from: document, plain: true}}}, err
	case resourceVersion + " DeviceClass":
		one, err := readClass(document)
		return content{classes: []class{{class: one, from: document}}}, err
	case APIVersion + " " + Kind:
		return readGroups(document)
	case "v1 List":
		return content{}, nil // an empty one: Items left nothing else of it
	}
	what := fmt.Sprintf("%s %s is neither a Node nor a Fleet", orNo(version, "apiVersion"), orNo(kind, "kind"))
	mend := fmt.Sprintf("use v1 Node, or %s %s", APIVersion, Kind)
	if strings.HasPrefix(version, "resource.k8s.io/") {
		what = fmt.Sprintf("%s %s is none of the devices of a fleet", version, orNo(kind, "kind"))
		mend = fmt.Sprintf("use ResourceSlice and DeviceClass of %s", resourceVersion)
	}
	return content{}, document.At(what, mend)
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

// nameLine returns the line of a node's or a group's name.
func nameLine(document yamlfile.Document) string {
	if _, isNode := document.Content["metadata"]; isNode {
		return badinput.Position(document.File, document.LineOf("metadata", "name"))
	}
	return badinput.Position(document.File, document.LineOf("name"))
}
