package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/simulator/inputs/redact"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// FormatObjects is the format that the manifest of a file of plain objects names; such a file has no manifest itself.
const FormatObjects = "kubernetes objects"

// ReadObjects reads a file of Kubernetes objects as a snapshot: YAML documents, one object each, or lists of them.
// kwokctl snapshot export (and save --format k8s) and kubectl get -o yaml write such files, and kwokctl snapshot record
// begins with one; its changes follow as documents of kind ResourcePatch. Name is its name in errors.
//
// Such a file has neither its time of capture nor the requested kinds. The instant is the latest that an object names.
// A kind without objects is Unsaid. Only changes that add or remove nodes are read; a warning counts all others. Other
// documents are bad input, with their line.
func ReadObjects(content []byte, name string) (Snapshot, error) {
	documents, err := yamlfile.Read(name, content)
	if err != nil {
		return Snapshot{}, err
	}
	r := objects{
		known: make(map[schema.GroupKind]int), kinds: kinds(), lines: make(map[string]int), left: make(map[int]int),
		passed: make(map[string]int),
	}
	for i, k := range r.kinds {
		r.known[k.gvk().GroupKind()] = i
		for _, other := range k.also {
			r.known[other.WithKind(k.name).GroupKind()] = i
		}
	}
	for _, document := range documents {
		items, err := document.Items()
		if err != nil {
			return Snapshot{}, err
		}
		for _, item := range items {
			if err := r.read(item); err != nil {
				return Snapshot{}, err
			}
		}
	}
	return r.snapshot(name), nil
}

// objects is the state after some documents.
type objects struct {
	kinds []kind
	known map[schema.GroupKind]int
	found []found
	// lines is the line of each object, left the number of a kind that no scheduler counts, passed the content that is
	// not read, for people.
	lines   map[string]int
	left    map[int]int
	passed  map[string]int
	latest  time.Time
	changes []Change
}

// found is an object of one of the kinds.
type found struct {
	kind int
	object
}

// read takes in a document. Kinds that no scheduler reads are passed over.
func (r *objects) read(document yamlfile.Document) error {
	version, _ := document.Content["apiVersion"].(string)
	name, _ := document.Content["kind"].(string)
	if version == "" || name == "" {
		return document.At("this is no Kubernetes object: it has no apiVersion, or no kind",
			"use a file of lockstep snapshot, of kwokctl snapshot export, or of kubectl get -o yaml")
	}
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		return document.At(fmt.Sprintf("the apiVersion is %q", version), "write GROUP/VERSION", "apiVersion")
	}
	if group.Group == patchGroup && name == patchKind {
		return r.change(document)
	}
	i, ok := r.known[group.WithKind(name).GroupKind()]
	if !ok {
		return nil
	}
	k := r.kinds[i]
	if group != k.resource.GroupVersion() && !slices.Contains(k.also, group) {
		r.passed[fmt.Sprintf("%s of %s (only %s can be read)", k.resource.Resource, version, k.resource.GroupVersion())]++
		return nil
	}
	redact.Environment(document.Content)
	o := k.blank()
	if err := document.DecodeLenient(o); err != nil {
		return err
	}
	if o.GetName() == "" {
		return document.At("the "+k.name+" has no name", "give it metadata.name", "metadata")
	}
	id := k.resource.Resource + " " + o.GetNamespace() + "/" + o.GetName()
	if earlier, twice := r.lines[id]; twice {
		return document.At(
			fmt.Sprintf("%s %s is there already, in line %d", k.name, o.GetName(), earlier),
			"leave one of them",
		)
	}
	r.lines[id] = document.Line
	r.date(o)
	if ended(o) {
		r.left[i]++
		return nil
	}
	normalize(k, o)
	r.found = append(r.found, found{i, o})
	return nil
}

// date makes the state no older than the instants in the object: its creation, its changes, its node's last heartbeat.
func (r *objects) date(o object) {
	instants := []metav1.Time{o.GetCreationTimestamp()}
	for _, entry := range o.GetManagedFields() {
		if entry.Time != nil {
			instants = append(instants, *entry.Time)
		}
	}
	switch o := o.(type) {
	case *corev1.Node:
		for _, condition := range o.Status.Conditions {
			instants = append(instants, condition.LastHeartbeatTime, condition.LastTransitionTime)
		}
	case *corev1.Pod:
		for _, condition := range o.Status.Conditions {
			instants = append(instants, condition.LastTransitionTime)
		}
		if o.Status.StartTime != nil {
			instants = append(instants, *o.Status.StartTime)
		}
	}
	for _, at := range instants {
		if at.After(r.latest) {
			r.latest = at.Time
		}
	}
}

// readMarks has pods name their gangs, as the PodGroups of the file say.
func (r *objects) readMarks() {
	read := newMarks()
	for _, o := range r.found {
		read.learn(o.object)
	}
	for _, o := range r.found {
		if pod, ok := o.object.(*corev1.Pod); ok {
			read.read(pod)
		}
	}
}

// snapshot is all that was read, ordered as every snapshot is.
func (r *objects) snapshot(name string) Snapshot {
	r.readMarks()
	slices.SortFunc(r.found, func(a, b found) int {
		return cmp.Or(
			cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
	s := Snapshot{Manifest: Manifest{Format: FormatObjects, Taken: r.latest.UTC()}}
	count := make(map[int]int)
	for _, o := range r.found {
		count[o.kind]++
		r.kinds[o.kind].add(&s, o.object)
	}
	for i, k := range r.kinds {
		said := Kind{
			Resource: k.resource.Resource, Group: k.resource.Group, Version: k.resource.Version,
			Count: count[i], LeftOut: r.left[i], State: Captured,
		}
		if said.Count+said.LeftOut == 0 {
			said.State = Unsaid
		}
		s.Manifest.Kinds = append(s.Manifest.Kinds, said)
	}
	for _, what := range slices.Sorted(maps.Keys(r.passed)) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %d %s are not read", name, r.passed[what], what))
	}
	slices.SortStableFunc(r.changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	s.Changes = r.changes
	return s
}

// readAny reads a snapshot of ours, or a file of objects. It detects the format from the first bytes, not the name.
func readAny(in io.Reader, name string) (Snapshot, error) {
	lines, err := open(in, name)
	if err != nil {
		return Snapshot{}, err
	}
	beginning, err := lines.Peek(1 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return Snapshot{}, (&reader{name: name}).unread(0, err)
	}
	beginning = bytes.TrimSpace(beginning)
	if len(beginning) == 0 || bytes.HasPrefix(beginning, []byte(`{"format":`)) ||
		bytes.HasPrefix(beginning, []byte(`{"resource":`)) {
		return Read(lines, name)
	}
	content, err := io.ReadAll(lines)
	if err != nil {
		return Snapshot{}, (&reader{name: name}).unread(0, err)
	}
	return ReadObjects(content, name)
}
