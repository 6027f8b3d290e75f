package cases

import "strings"

// frame is a field or an item that holds the lines below it.
type frame struct {
	depth int
	label string
}

// scanner tracks the fields around the line that it reads.
type scanner struct {
	lines []string
	stack []frame
	// block is the depth of a field whose value is a text of several lines, or -1.
	block int
}

// paths returns for each line of YAML the path of the field around it, such as
// JobSet.spec.replicatedJobs[node].template. An item of a list has its name, or none.
func paths(lines []string) [][]string {
	s := &scanner{lines: lines, block: -1}
	out := make([][]string, len(lines))
	s.document(0)
	for i, line := range lines {
		out[i] = s.read(i, line)
	}
	return out
}

func (s *scanner) read(i int, line string) []string {
	if strings.HasPrefix(line, "---") {
		s.document(i + 1)
		return nil
	}
	column := indent(line)
	if text := strings.TrimSpace(
		line,
	); text == "" || strings.HasPrefix(text, "#") ||
		s.block >= 0 && 2*column > s.block {
		return s.path()
	}
	s.block = -1
	rest := line[column:]
	for strings.HasPrefix(rest, "- ") {
		s.leave(2*column + 1)
		s.stack = append(s.stack, frame{2*column + 1, "[" + s.itemName(i, column+2) + "]"})
		column, rest = column+2, rest[2:]
	}
	key, value, isField := strings.Cut(strings.TrimSpace(rest), ":")
	s.leave(2 * column)
	path := s.path()
	if isField {
		s.stack = append(s.stack, frame{2 * column, "." + key})
	}
	if value = strings.TrimSpace(value); strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">") {
		s.block = 2 * column
	}
	return path
}

// document resets the scanner to the kind of the object that begins at a line.
func (s *scanner) document(start int) {
	s.stack, s.block = nil, -1
	for _, line := range s.lines[start:] {
		if strings.HasPrefix(line, "---") {
			return
		}
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			s.stack = []frame{{-1, strings.TrimSpace(kind)}}
			return
		}
	}
}

// leave drops the fields that are not around a line at a depth.
func (s *scanner) leave(depth int) {
	for n := len(s.stack); n > 0 && s.stack[n-1].depth >= depth; n-- {
		s.stack = s.stack[:n-1]
	}
}

func (s *scanner) path() []string {
	out := make([]string, 0, len(s.stack))
	for _, f := range s.stack {
		out = append(out, f.label)
	}
	return out
}

// itemName returns the name of the item that begins at a line, whose fields are in a column.
func (s *scanner) itemName(start, column int) string {
	for i, line := range s.lines[start:] {
		if i > 0 && indent(line) < column {
			return ""
		}
		if name, ok := strings.CutPrefix(line[min(column, len(line)):], "name: "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// heading returns the first line of a hunk: the path around all its lines.
func heading(paths [][]string) string {
	common := paths[0]
	for _, path := range paths[1:] {
		n := 0
		for n < min(len(common), len(path)) && common[n] == path[n] {
			n++
		}
		common = common[:n]
	}
	if len(common) == 0 {
		return "@@\n"
	}
	return "@@ " + strings.TrimPrefix(strings.Join(common, ""), ".") + " @@\n"
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
