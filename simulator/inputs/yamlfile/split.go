package yamlfile

import (
	"bytes"
)

// chunk is the text of one document and the number of lines of the file before it.
type chunk struct {
	text   []byte
	before int
}

// split cuts content at document separators. It never changes a line's place or columns within its chunk.
func split(content []byte) []chunk {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	var chunks []chunk
	current := chunk{}
	line := 0
	for raw := range bytes.Lines(content) {
		rest, separator := afterSeparator(raw)
		if separator {
			chunks = append(chunks, current)
			current = chunk{before: line, text: []byte("   ")} // stands for the three dashes
			raw = rest
		}
		current.text = append(current.text, raw...)
		line++
	}
	return append(chunks, current)
}

// afterSeparator reports whether a line begins or ends a document, and returns the rest of the line.
func afterSeparator(raw []byte) ([]byte, bool) {
	for _, mark := range [][]byte{[]byte("---"), []byte("...")} {
		rest, found := bytes.CutPrefix(raw, mark)
		if found && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			return rest, true
		}
	}
	return nil, false
}

// firstLine is the 1-based line of the chunk's first content, or 0 when it holds only blanks and comments.
func (c chunk) firstLine() int {
	line := c.before
	for raw := range bytes.Lines(c.text) {
		line++
		if text := bytes.TrimSpace(raw); len(text) > 0 && text[0] != '#' {
			return line
		}
	}
	return 0
}
