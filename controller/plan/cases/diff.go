package cases

import (
	"fmt"
	"slices"
	"strings"
)

// edit is a run of lines that differ: old[i:j] is replaced by new[k:l].
type edit struct{ i, j, k, l int }

// gap is the number of equal lines between two edits that are printed as one hunk.
const gap = 2

// diff returns the difference between two texts. Before the lines of a hunk are as many equal ones as apply needs to
// find the place.
func diff(from, to string) string {
	a, b := split(from), split(to)
	aPaths, bPaths := paths(a), paths(b)
	var out strings.Builder
	cursor := 0
	for _, hunk := range hunks(edits(a, b)) {
		first, last := hunk[0], hunk[len(hunk)-1]
		out.WriteString(heading(slices.Concat(bPaths[first.k:last.l], aPaths[first.i:last.j])))
		for _, line := range a[contextStart(a, cursor, first.i, last.j):first.i] {
			out.WriteString(" " + line)
		}
		at := first.i
		for _, e := range hunk {
			write(&out, " ", a[at:e.i])
			write(&out, "-", a[e.i:e.j])
			write(&out, "+", b[e.k:e.l])
			at = e.j
		}
		cursor = last.j
	}
	return out.String()
}

func write(out *strings.Builder, mark string, lines []string) {
	for _, line := range lines {
		out.WriteString(mark + line)
	}
}

// contextStart returns where the context of a hunk begins, so that the first match behind the hunk before is the right
// one.
func contextStart(a []string, cursor, i, j int) int {
	start := i
	for start > cursor && find(a, cursor, a[start:j]) != start {
		start--
	}
	return start
}

// find returns where the lines are in a, at or behind from, or -1.
func find(a []string, from int, lines []string) int {
	for at := from; at+len(lines) <= len(a); at++ {
		if slices.Equal(a[at:at+len(lines)], lines) {
			return at
		}
	}
	return -1
}

// apply returns the text that results from applying a difference to another. Hunks follow each other in the order of
// the text.
func apply(from, difference string) (string, error) {
	a := split(from)
	var out strings.Builder
	cursor, lines := 0, split(difference)
	for len(lines) > 0 {
		title := strings.TrimSpace(lines[0])
		if !strings.HasPrefix(title, "@@") {
			return "", fmt.Errorf("line %q: a hunk begins with @@", title)
		}
		end := 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "@@") {
			end++
		}
		old, replaced, err := sides(lines[1:end])
		if err != nil {
			return "", fmt.Errorf("hunk %s: %w", title, err)
		}
		at := find(a, cursor, old)
		if at < 0 {
			return "", fmt.Errorf(
				"hunk %s: behind line %d the base has no lines %q",
				title,
				cursor,
				strings.Join(old, ""),
			)
		}
		write(&out, "", a[cursor:at])
		write(&out, "", replaced)
		cursor, lines = at+len(old), lines[end:]
	}
	write(&out, "", a[cursor:])
	return out.String(), nil
}

// sides returns the lines of a hunk before and after.
func sides(hunk []string) (before, after []string, err error) {
	for _, line := range hunk {
		switch line[0] {
		case ' ':
			before, after = append(before, line[1:]), append(after, line[1:])
		case '-':
			before = append(before, line[1:])
		case '+':
			after = append(after, line[1:])
		default:
			return nil, nil, fmt.Errorf("line %q begins with none of space, - and +", strings.TrimSpace(line))
		}
	}
	return before, after, nil
}

// hunks joins edits that are near each other.
func hunks(edits []edit) [][]edit {
	var out [][]edit
	for _, e := range edits {
		if n := len(out); n > 0 && e.i-out[n-1][len(out[n-1])-1].j <= gap {
			out[n-1] = append(out[n-1], e)
			continue
		}
		out = append(out, []edit{e})
	}
	return out
}

// edits returns the fewest changed lines that make b of a: the complement of a longest common subsequence.
func edits(a, b []string) []edit {
	longest := commonSubsequences(a, b)
	var out []edit
	equal := 0 // lines behind the edit before
	for i, k := 0, 0; i < len(a) || k < len(b); {
		if i < len(a) && k < len(b) && a[i] == b[k] {
			i, k, equal = i+1, k+1, equal+1
			continue
		}
		e := edit{i: i, k: k}
		for (i < len(a) || k < len(b)) && (i == len(a) || k == len(b) || a[i] != b[k]) {
			if k == len(b) || i < len(a) && longest[i+1][k] >= longest[i][k+1] {
				i++
			} else {
				k++
			}
		}
		e.j, e.l = i, k
		out, equal = append(out, slide(a, b, e, equal)), 0
	}
	return out
}

// commonSubsequences returns the length of the longest common subsequence of a[i:] and b[k:], for each i and k.
func commonSubsequences(a, b []string) [][]int {
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i, line := range slices.Backward(a) {
		for k, other := range slices.Backward(b) {
			if line == other {
				longest[i][k] = longest[i+1][k+1] + 1
				continue
			}
			longest[i][k] = max(longest[i+1][k], longest[i][k+1])
		}
	}
	return longest
}

// slide moves an insertion or a removal up, over at most so many equal lines, to where it begins with the outermost
// line: an item of a list is then shown from its dash on.
func slide(a, b []string, e edit, equal int) edit {
	lines, from, to := b, e.k, e.l
	if from == to {
		lines, from, to = a, e.i, e.j
	} else if e.i != e.j {
		return e
	}
	best, shift := indent(lines[from]), 0
	for up := 1; up <= equal && lines[from-up] == lines[to-up]; up++ {
		if in := indent(lines[from-up]); in < best {
			best, shift = in, up
		}
	}
	return edit{i: e.i - shift, j: e.j - shift, k: e.k - shift, l: e.l - shift}
}

// split returns lines with their ends.
func split(text string) []string { return slices.Collect(strings.Lines(text)) }
