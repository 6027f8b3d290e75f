package cases

import (
	"strings"
)

// fold makes the difference of each part that has a base, and gives one to parts that are whole. Parts that did not
// fit, and were not set since, stay.
func (s *Set) fold() {
	known := s.bases()
	for _, c := range s.All() {
		for _, name := range c.Parts("") {
			p := c.parts[name]
			if p.misfit != nil {
				continue
			}
			if holder, of := s.baseOf(c, name); holder == nil || !holder.serves(of, c) {
				p.base = "" // it was removed, like upstream.yaml if upstream now refuses the job
			}
			if p.base == "" && !known[c.Name+"/"+name] {
				p.base = s.nearest(c, name, known)
			}
			c.parts[name] = p
			if holder, of := s.baseOf(c, name); holder != nil {
				p.difference = diff(holder.parts[of].text, p.text)
			}
			c.parts[name] = p
		}
	}
}

// serves reports whether a part can be the base of one of another case, or of its own.
func (c *Case) serves(name string, user *Case) bool {
	return c.parts[name].misfit == nil && (c == user || c.isRoot(name))
}

// bases returns the parts of other cases that parts are differences from, as case/part. Only these are given to further
// parts: a new base is a decision, which a person makes in a header.
func (s *Set) bases() map[string]bool {
	known := map[string]bool{}
	for _, c := range s.All() {
		for name := range c.parts {
			if holder, of := s.baseOf(c, name); holder != nil && holder != c {
				known[holder.Name+"/"+of] = true
			}
		}
	}
	return known
}

// large is the number of lines up to which a whole part is easier to read than a difference from another case.
const large = 20

// nearest returns the base from which a part differs little: upstream.yaml of its own case, or where that takes many
// lines, as for gangs, the part of another case that halves them.
func (s *Set) nearest(c *Case, name string, known map[string]bool) string {
	text := c.parts[name].text
	best, lines := "", strings.Count(text, "\n")
	if own, ok := c.Text(Upstream); ok && isAnswer(name) {
		best, lines = Upstream, strings.Count(diff(own, text), "\n")
		if lines <= large {
			return best
		}
	}
	if best == "" {
		lines = lines * 2 / 3
	} else {
		lines /= 2
	}
	for _, other := range s.All() {
		if other == c || !known[other.Name+"/"+name] || !other.serves(name, c) {
			continue
		}
		if n := strings.Count(diff(other.parts[name].text, text), "\n"); n < lines {
			best, lines = other.Name, n
		}
	}
	return best
}

// isAnswer reports whether a part is compared with upstream's first answer.
func isAnswer(name string) bool {
	return name == Want || name != Upstream && strings.HasPrefix(name, "upstream") && strings.HasSuffix(name, ".yaml")
}
