package progress

import "charm.land/lipgloss/v2"

// theme is the look of the parts of a picture. The zero theme writes no escape sequences.
type theme struct{ strong, faint, good, chart, alarm lipgloss.Style }

// colored is a theme of the terminal's own colors, so that it fits dark ones and light ones. No information depends on
// color alone.
func colored() theme {
	style := lipgloss.NewStyle()
	return theme{
		strong: style.Bold(true), faint: style.Faint(true), good: style.Foreground(lipgloss.Green),
		chart: style.Foreground(lipgloss.Cyan), alarm: style.Bold(true).Foreground(lipgloss.Yellow),
	}
}

// label is a text in the column of labels.
func (t theme) label(text string) string { return t.faint.Render(padded(text, labelWidth)) }
