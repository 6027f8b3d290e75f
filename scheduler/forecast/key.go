package forecast

import (
	"strconv"
	"strings"
)

// Key identifies the kind of a run. Runs of one key are expected to take about as long.
type Key struct {
	Namespace string
	// Owner is the submitter, as far as that is known; empty for unknown.
	Owner string
	// Runtime is the name of the training runtime, or the kind of the owner.
	Runtime string
	// Stem is the common part of the names of repeated submissions (see Stem).
	Stem string
	// Size is the number of accelerators.
	Size int64
}

// Stem returns the common part of the names of repeated submissions: without digits, and without the suffix that
// generators append after the last hyphen (five characters or more with a digit among them).
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

// leastGenerated is the least number of characters of a generated suffix.
const leastGenerated = 5

func generated(suffix string) bool {
	return len(suffix) >= leastGenerated && strings.ContainsAny(suffix, "0123456789")
}

// allSizes stands for runs of any size.
const allSizes = -1

// The kinds of classes: of whole namespaces, for each size and for all, of an owner, and of a stem.
const (
	kindShared = "namespace"
	kindOwner  = "owner"
	kindStem   = "stem"
)

// classes returns the names of the classes of a key, the broadest first.
func (k Key) classes() []string {
	size := strconv.FormatInt(k.Size, 10)
	return []string{
		join(kindShared, k.Namespace, strconv.Itoa(allSizes)),
		join(kindShared, k.Namespace, size),
		join(kindOwner, k.Namespace, k.Owner, k.Runtime, size),
		join(kindStem, k.Namespace, k.Owner, k.Runtime, k.Stem, size),
	}
}

// join makes one name of parts without slashes.
func join(parts ...string) string { return strings.Join(parts, "/") }

// namespaceOf returns the namespace of a class.
func namespaceOf(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

// sizeOf returns the size of a class of a whole namespace, false for a narrower class.
func sizeOf(name string) (int64, bool) {
	text, ok := strings.CutPrefix(name, kindShared+"/"+namespaceOf(name)+"/")
	if !ok {
		return 0, false
	}
	size, err := strconv.ParseInt(text, 10, 64)
	return size, err == nil
}
