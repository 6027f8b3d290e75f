package fleet

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

var (
	counterName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	// placeholder matches anything in braces, so that unknown placeholders are reported.
	placeholder = regexp.MustCompile(`\{[^{}]*\}`)
	padding     = regexp.MustCompile(`^0[1-9]$`)
)

// count holds the values of a group's counters for one node.
type count struct {
	fleet string
	names []string
	value map[string]int
}

// counts yields every combination of counters, the first varying slowest.
func counts(fleet string, counters []counter) iter.Seq[count] {
	return func(yield func(count) bool) {
		total := 1
		names := make([]string, len(counters))
		for i, one := range counters {
			total *= one.Count
			names[i] = one.Name
		}
		for index := range total {
			value := make(map[string]int, len(counters))
			rest := index
			for _, one := range slices.Backward(counters) {
				value[one.Name] = rest%one.Count + 1
				rest /= one.Count
			}
			if !yield(count{fleet: fleet, names: names, value: value}) {
				return
			}
		}
	}
}

// expand replaces the placeholders of text, which stands at path in the document.
func expand(from yamlfile.Document, text string, at count, path ...any) (string, error) {
	unknown := ""
	expanded := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, ok := at.resolve(strings.Trim(found, "{}"))
		if !ok && unknown == "" {
			unknown = found
		}
		return value
	})
	if unknown == "" {
		return expanded, nil
	}
	mend := "the group has no counters; remove the braces or add counters"
	if len(at.names) > 0 {
		mend = fmt.Sprintf("write {%[1]s}, {%[1]s:02} or {uuid:%[1]s}", at.names[0])
		mend += "; counters are " + strings.Join(at.names, ", ")
	}
	return "", from.At(fmt.Sprintf("placeholder %s is not known", unknown), mend, path...)
}

// resolve is the value of the text between braces.
func (c count) resolve(inside string) (string, bool) {
	head, tail, colon := strings.Cut(inside, ":")
	if head == "uuid" && colon {
		return c.uuid(strings.Split(tail, ","))
	}
	value, known := c.value[head]
	switch {
	case !known:
		return "", false
	case !colon:
		return strconv.Itoa(value), true
	case padding.MatchString(tail):
		width, err := strconv.Atoi(tail)
		return fmt.Sprintf("%0*d", width, value), err == nil
	}
	return "", false
}

// uuid hashes the fleet's name and some counters into a UUID of version 8 (RFC 9562: the maker's own scheme).
func (c count) uuid(names []string) (string, bool) {
	var said []string
	for _, name := range names {
		value, known := c.value[name]
		if !known {
			return "", false
		}
		said = append(said, fmt.Sprintf("%s=%d", name, value))
	}
	return uuidOf(c.fleet, said...), true
}

// uuidOf is the UUID of a thing in a fleet, hashed from its identifying words.
func uuidOf(fleet string, said ...string) string {
	hashed := append([]string{"simulator.lockstep.dev/fleet", fleet}, said...)
	sum := sha256.Sum256([]byte(strings.Join(hashed, "\x00")))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
