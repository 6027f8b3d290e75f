package summary

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// span is consecutive ranks on consecutive nodes, the same number on each.
type span struct {
	first, last         int
	firstNode, lastNode string
	each                int
}

// spans describes ranks in order as pieces of text: "0-15 rack-1-tray-01..08 (2 each), ".
func spans(ranks []Rank) []string {
	var merged []span
	for _, block := range blocks(ranks) {
		if len(merged) > 0 {
			last := &merged[len(merged)-1]
			follows := last.last+1 == block.first && last.each == block.each
			if follows && isNext(last.lastNode, block.firstNode) {
				last.last, last.lastNode = block.last, block.lastNode
				continue
			}
		}
		merged = append(merged, block)
	}
	pieces := make([]string, len(merged))
	for i, span := range merged {
		pieces[i] = span.String()
		if i < len(merged)-1 {
			pieces[i] += ", "
		}
	}
	return pieces
}

// blocks are the consecutive ranks of single nodes.
func blocks(ranks []Rank) []span {
	var found []span
	for _, rank := range ranks {
		if len(found) > 0 {
			last := &found[len(found)-1]
			if last.last+1 == rank.Rank && last.firstNode == rank.Node {
				last.last = rank.Rank
				last.each++
				continue
			}
		}
		found = append(
			found,
			span{first: rank.Rank, last: rank.Rank, firstNode: rank.Node, lastNode: rank.Node, each: 1},
		)
	}
	return found
}

func (s span) String() string {
	said := between(s.first, s.last) + " " + s.firstNode
	if s.firstNode == s.lastNode {
		return said
	}
	said += ".." + trailingNumber.FindString(s.lastNode)
	if s.each > 1 {
		said += fmt.Sprintf(" (%d each)", s.each)
	}
	return said
}

func between(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

var trailingNumber = regexp.MustCompile(`[0-9]+$`)

// isNext reports whether node b's name is that of node a with the number at its end counted up by one.
func isNext(a, b string) bool {
	digits := trailingNumber.FindString(a)
	number, err := strconv.Atoi(digits)
	if err != nil {
		return false
	}
	return b == strings.TrimSuffix(a, digits)+fmt.Sprintf("%0*d", len(digits), number+1)
}

// rankList is the ranks without a node: "3, 7-9".
func rankList(ranks []Rank) string {
	var missing []span
	for _, rank := range ranks {
		if rank.Node != "" {
			continue
		}
		if len(missing) > 0 && missing[len(missing)-1].last+1 == rank.Rank {
			missing[len(missing)-1].last = rank.Rank
			continue
		}
		missing = append(missing, span{first: rank.Rank, last: rank.Rank})
	}
	said := make([]string, len(missing))
	for i, one := range missing {
		said[i] = between(one.first, one.last)
	}
	return strings.Join(said, ", ")
}
