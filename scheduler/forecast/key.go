package forecast

import (
	"strconv"
	"strings"
)

// Key says of which kind a run is. Runs of one key are expected to take about as long.
type Key struct {
	Namespace string
	// Owner is who submitted it, as far as that is known; empty for unknown.
	Owner string
	// Runtime is the name of the training runtime, or the kind of the owner.
	Runtime string
	// Stem is what the names of repeated submissions have in common (see Stem).
	Stem string
	// Size is the number of accelerators.
	Size int64
}

// Stem returns the part of a name that repeated submissions have in common: without digits, and without what generators append after the last
// hyphen (five characters or more with a digit among them).
func Stem(name string) string {
	if at := strings.LastIndexByte(name, '-'); at > 0 && generated(name[at+1:]) {
		name = name[:at]
	}
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name), "-.")
}

// leastGenerated is how many characters a generated suffix has at least.
const leastGenerated = 5

func generated(suffix string) bool {
	return len(suffix) >= leastGenerated && strings.ContainsAny(suffix, "0123456789")
}

// classes returns the names of the classes of a key, the broadest first.
func (k Key) classes() []string {
	size := strconv.FormatInt(k.Size, 10)
	return []string{
		"",
		join("size", size),
		join("namespace", k.Namespace, size),
		join("owner", k.Namespace, k.Owner, k.Runtime, size),
		join("stem", k.Namespace, k.Owner, k.Runtime, k.Stem, size),
	}
}

// join makes one name of parts, none of which has a slash.
func join(parts ...string) string { return strings.Join(parts, "/") }
