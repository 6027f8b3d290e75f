package anonymize

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// Census holds the texts of some objects: every one that gets a pseudonym, and the rules for those that do not.
type Census struct {
	// texts are the classes of every text that was said, the first of ranks that it was said as.
	texts map[string]string
	kept  map[string]bool
	// places are the names of nodes and domains, which are ordered in another way than all else.
	places map[string]bool
	// numbers are long numbers and attributes are texts of devices, both by their key: whether they are retained is
	// known when all selectors and expressions have been read.
	numbers, attributes map[string]map[string]bool
	compared            map[string]bool // keys that a selector compares by value
	expressions         map[string]bool
	// ephemeral are the pods and volumes for which a claim has a name that is made of theirs.
	ephemeral map[[2]string]bool
	walker    walker
}

// NewCensus returns an empty census.
func NewCensus() *Census {
	c := &Census{
		texts:       map[string]string{},
		places:      map[string]bool{},
		kept:        map[string]bool{},
		compared:    map[string]bool{},
		ephemeral:   map[[2]string]bool{},
		expressions: map[string]bool{},
		numbers:     map[string]map[string]bool{},
		attributes:  map[string]map[string]bool{},
	}
	c.walker = walker{speaker: c, levels: levels()}
	return c
}

// Add counts the texts of an API object, which has to be a pointer. The object is unusable afterwards.
func (c *Census) Add(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		for _, volume := range pod.Spec.Volumes {
			if volume.Ephemeral != nil {
				c.ephemeral[[2]string{pod.Name, volume.Name}] = true
			}
		}
	}
	c.walker.object(reflect.ValueOf(object))
}

func (c *Census) say(class, s string) string {
	if old, ok := c.texts[s]; !ok || rank(class) < rank(old) {
		c.texts[s] = class
	}
	if class == classNode || class == classDomain {
		c.places[s] = true
	}
	return s
}

func (c *Census) keep(s string) string {
	c.kept[s] = true
	return s
}

func (c *Census) compare(key string) { c.compared[key] = true }

func (c *Census) express(cel string) {
	c.expressions[cel] = true
}

func (c *Census) value(class, key, s string) string {
	if isNumber(s) {
		note(c.numbers, key, s)
	}
	return c.say(class, s)
}

func (c *Census) attribute(name, s string) string {
	note(c.attributes, name, s)
	return c.say(classValue, s)
}

func note(into map[string]map[string]bool, key, s string) {
	if into[key] == nil {
		into[key] = map[string]bool{}
	}
	into[key][s] = true
}
