package anonymize

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// The classes of texts: the words in pseudonyms. Further ones are the kinds of objects in lower case.
const (
	classNode      = "node"
	classNamespace = "namespace"
	classImage     = "image"
	classKey       = "key"
	classDomain    = "domain" // the value of a node's label
	classValue     = "value"
	classUID       = "uid"
	classText      = "text"
)

// rank orders the classes: a text that stands for several things is called by the first of them.
func rank(class string) int {
	ranks := []string{classNode, classNamespace, "pod", "podgroup"}
	if i := slices.Index(ranks, class); i >= 0 {
		return i
	}
	rest := []string{classDomain, classImage, classKey, classValue, classUID, classText}
	if i := slices.Index(rest, class); i >= 0 {
		return len(ranks) + 1 + i
	}
	return len(ranks) // all other kinds
}

// Names are the pseudonyms of a census.
type Names struct {
	pseudonyms map[string]string
	kept       map[string]bool
	walker     walker
}

// Names gives every text of the census its pseudonym.
func (c *Census) Names() *Names {
	kept := maps.Clone(c.kept)
	for key := range c.compared {
		maps.Copy(kept, c.numbers[key])
	}
	for name, values := range c.attributes {
		_, short, qualified := strings.Cut(name, "/")
		if !qualified {
			short = name
		}
		for expression := range c.expressions {
			if strings.Contains(expression, short) {
				maps.Copy(kept, values)
			}
		}
	}
	texts := slices.Collect(maps.Keys(c.texts))
	slices.SortFunc(texts, c.compareTexts)
	n := &Names{pseudonyms: make(map[string]string, len(texts)), kept: kept}
	n.walker = walker{speaker: n, levels: c.walker.levels}
	width := len(strconv.Itoa(len(texts)))
	for i, s := range texts {
		n.pseudonyms[s] = fmt.Sprintf("%s%0*d-%s", letter(s), width, i+1, c.texts[s])
	}
	for pair := range c.ephemeral {
		n.pseudonyms[pair[0]+"-"+pair[1]] = n.Of(pair[0]) + "-" + n.Of(pair[1])
	}
	return n
}

// compareTexts orders texts that are ever compared with each other as placement does.
func (c *Census) compareTexts(a, b string) int {
	switch {
	case c.places[a] && c.places[b]:
		return topology.CompareNatural(a, b)
	case c.places[a]:
		return -1
	case c.places[b]:
		return 1
	}
	return strings.Compare(a, b)
}

// letter begins the pseudonym of a text so that it is ordered as the text is among those that stay: names of
// ReplicatedJobs, and truth values.
func letter(s string) string {
	for _, kept := range []struct{ word, letter string }{
		{"dataset-initializer", "a"}, {"false", "e"}, {"launcher", "g"}, {"model-initializer", "m"}, {"node", "n"}, {"true", "p"},
	} {
		if s < kept.word {
			return kept.letter
		}
	}
	return "x"
}

// Of is the pseudonym of a text, or the text itself if it is retained.
func (n *Names) Of(s string) string {
	if word(s) || n.kept[s] {
		return s
	}
	return n.pseudonyms[s]
}

// Rename renames all that has a name in an API object, which has to be a pointer and to have been in the census.
func (n *Names) Rename(object any) { n.walker.object(reflect.ValueOf(object)) }

func (n *Names) say(_, s string) string       { return n.Of(s) }
func (n *Names) keep(s string) string         { return s }
func (n *Names) value(_, _, s string) string  { return n.Of(s) }
func (n *Names) attribute(_, s string) string { return n.Of(s) }
func (n *Names) compare(string)               {}
func (n *Names) express(string)               {}
