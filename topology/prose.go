package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// String returns one line that a user can act on.
func (s *Shortfall) String() string {
	if s.Stray != "" {
		return oneLine("cannot be completed: running member " + s.Stray + " is where the gang's rules do not allow it")
	}
	parts := []string{s.need()}
	for _, part := range []string{s.unoffered(), s.missing(), s.near(), s.wider(), s.limits(), s.obstacles(), s.never()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return oneLine(strings.Join(parts, "; "))
}

// oneLine replaces control characters in the caller's names and rules, which would break a line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// label returns the name of a level for prose: its name and key, or those of them that there are.
func (l Level) label() string {
	if l.Name == "" || l.Name == l.Key {
		return l.Key
	}
	return l.Name + " (" + l.Key + ")"
}

func (s *Shortfall) need() string {
	text := "needs " + quantity(s.Members, "member")
	if s.TPU != "" {
		text += " on TPU slices " + s.TPU
	}
	if s.Level == (Level{}) {
		return text
	}
	return text + " in one " + s.Level.label()
}

// unoffered names the resources that would have to be added to the cluster, or are misspelled.
func (s *Shortfall) unoffered() string {
	if len(s.Unoffered) == 0 {
		return ""
	}
	return "no node offers " + strings.Join(s.Unoffered, ", ")
}

func (s *Shortfall) near() string {
	if len(s.Nearest) == 0 {
		return "no node is in a " + cmp.Or(s.Level.Name, s.Level.Key)
	}
	best := s.Nearest[0]
	text := fmt.Sprintf("nearest %s: %d of %d", best.Domain, best.Holds, s.Members)
	if s.Level == (Level{}) {
		text = fmt.Sprintf("the cluster holds %d of %d", best.Holds, s.Members)
	}
	if s.Lacking != "" {
		text += ", without " + s.Lacking
	}
	if best.Full > 0 && s.Level != (Level{}) {
		text += ", " + quantity(best.Full, "node") + " full there"
	}
	return text
}

// wider names the innermost domain that would hold all members if the requirement were relaxed.
func (s *Shortfall) wider() string {
	for _, near := range slices.Backward(s.Levels) {
		if s.Level != (Level{}) && near.Lacks == 0 && near.Domain.Level != s.Level {
			return fmt.Sprintf("%s %s holds all", near.Domain.Level.Name, near.Domain)
		}
	}
	return ""
}

func (s *Shortfall) limits() string {
	var parts []string
	for _, l := range s.Limits {
		parts = append(parts, fmt.Sprintf("%d more without %s", l.Members, l.Rule))
	}
	return strings.Join(parts, ", ")
}

func (s *Shortfall) obstacles() string {
	var parts []string
	for _, r := range s.Barred {
		parts = append(parts, quantity(r.Nodes, "node")+" barred by "+r.Rule)
	}
	if s.Full > 0 {
		parts = append(parts, quantity(s.Full, "node")+" without room")
	}
	if s.Outside > 0 {
		level := cmp.Or(s.Level.Name, s.Level.Key, "domain")
		parts = append(parts, quantity(s.Outside, "node")+" outside every "+level+" ("+s.Level.absence()+")")
	}
	return strings.Join(parts, ", ")
}

func (s *Shortfall) never() string {
	if s.Never && len(s.Unoffered) == 0 {
		return "it would not fit an empty cluster either"
	}
	return ""
}

func quantity(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
