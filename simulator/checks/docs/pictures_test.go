package docs_test

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// TestPictures draws the pictures of docs/concepts.md from the output of commands, and compares them with
// docs/pictures.
func TestPictures(t *testing.T) {
	for name, draw := range map[string]func(*testing.T) string{"map": clusterMap, "reservation": timelines, "parts": parts} {
		t.Run(name, func(t *testing.T) {
			page.Page{File: "docs/pictures/" + name + ".svg", Write: *rewrite, Mend: mend}.Is(t, draw(t))
		})
	}
}

// drawing is an SVG that grows. Lengths are in pixels.
type drawing struct {
	width, height int
	body          strings.Builder
}

const (
	// inReserve is the outline of a place that is reserved.
	inReserve = `fill="none" stroke="#b00020" stroke-width="2" stroke-dasharray="4 3"`
	grid      = `stroke="#d0d0d0" stroke-width="1"`
)

func (d *drawing) rect(x, y, width, height float64, style string) {
	_, _ = fmt.Fprintf(
		&d.body,
		`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" %s/>`+"\n",
		x,
		y,
		width,
		height,
		style,
	)
}

func (d *drawing) line(x1, y1, x2, y2 float64) {
	_, _ = fmt.Fprintf(&d.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, grid)
}

// text writes at a point; anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, words string) {
	_, _ = fmt.Fprintf(
		&d.body,
		`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
		x,
		y,
		anchor,
		html.EscapeString(words),
	)
}

// svg returns the picture with its title, which readers without eyes on it get.
func (d *drawing) svg(title string) string {
	return fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="11">
<title>%s</title>
<rect width="%d" height="%d" fill="#ffffff"/>
%s</svg>
`,
		d.width,
		d.height,
		html.EscapeString(title),
		d.width,
		d.height,
		d.body.String(),
	)
}

// fill returns the color of the gang of that place in the list: light enough for black letters.
func fill(names []string, name string) string {
	colors := []string{
		"#8ecae6",
		"#ffb703",
		"#90be6d",
		"#f4978e",
		"#cdb4db",
		"#e9c46a",
		"#a8dadc",
		"#bcb8b1",
		"#ffd6a5",
		"#b5e48c",
	}
	return fmt.Sprintf(`fill="%s" stroke="#ffffff"`, colors[slices.Index(names, name)%len(colors)])
}
