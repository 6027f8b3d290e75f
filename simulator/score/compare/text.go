package compare

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// line is a line of the text: 36 for the title, then unit, both means, difference, interval, agreement and verdict.
const line = "%-36s %-5s %10s %10s %10s %23s %5s %s"

// WriteText prints the table for people: one block for each scheduler that is compared with the first, lines of at most
// 120 characters where names of inputs are not longer. Verdicts are words and signs, so that nothing depends on color.
func (t Table) WriteText(w io.Writer) error {
	var b strings.Builder
	if t.Watermark != "" {
		fmt.Fprintf(&b, "!! %s\n\n", t.Watermark)
	}
	fmt.Fprintf(&b, "%s on %s, load %s", t.Trace, t.Fleet, number(t.Load))
	if t.Estimates != 0 {
		fmt.Fprintf(&b, ", estimates up to %s times the run time", number(t.Estimates))
	}
	fmt.Fprintf(&b, "; seeds %s\n", strings.Trim(fmt.Sprint(t.Seeds), "[]"))
	if t.Costs != nil {
		fmt.Fprintf(&b, "costs of time: %s\n", t.Costs)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	for _, sentence := range t.InWords() {
		b.WriteString("\n" + wrapped(sentence) + "\n")
	}
	if t.Allocation != nil {
		b.WriteString("\n")
		t.Allocation.write(&b)
	} else {
		b.WriteString("\n")
		t.short(&b)
	}
	for i, other := range t.Schedulers[1:] {
		b.WriteString("\n")
		t.block(&b, i, other)
	}
	if t.Watermark != "" {
		fmt.Fprintf(&b, "\n!! %s\n", t.Watermark)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	return nil
}

// wrapped breaks a sentence into lines of at most 120 characters.
func wrapped(text string) string {
	const most = 120
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > most:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// block compares one scheduler with the first.
func (t Table) block(b *strings.Builder, other int, name string) {
	fmt.Fprintf(b, "A = %s, B = %s; means, and B less A seed by seed\n", t.Schedulers[0], name)
	put := func(cells ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf(line, cells...), " ") + "\n")
	}
	put("", "", "A", "B", "B - A", "95 % interval", "agree", "B is")
	for _, row := range t.Rows {
		d := row.Against[other]
		interval := "-"
		if d.Margin != nil && (d.Mean != 0 || *d.Margin != 0) {
			interval = "[" + signed(d.Mean-*d.Margin) + ", " + signed(d.Mean+*d.Margin) + "]"
		}
		put(
			row.Title, unit(row.Unit), number(row.Means[0]), number(row.Means[other+1]), signed(d.Mean), interval,
			fmt.Sprintf("%d/%d", d.Agree, d.Pairs), mark(d.Verdict),
		)
	}
}

// unit leaves out units without information.
func unit(u string) string {
	if u == "1" {
		return ""
	}
	return u
}

// mark is a verdict with a sign to find it by.
func mark(v Verdict) string {
	switch v {
	case Better:
		return "+ better"
	case Worse:
		return "- worse"
	case Equal:
		return "= equal"
	case Unclear:
		return "~ unclear"
	case BetterOnce:
		return "(+) once"
	case WorseOnce:
		return "(-) once"
	case NoVerdict:
	}
	return ""
}

// number has four digits, or all before the point if there are more.
func number(x float64) string {
	const digits = 4
	switch size := math.Abs(x); {
	case size >= 1e9:
		return strconv.FormatFloat(x, 'e', digits-1, 64)
	case x == 0 || size < 0.00005:
		return "0"
	default:
		after := min(max(digits-1-int(math.Floor(math.Log10(size))), 0), digits)
		text := strconv.FormatFloat(x, 'f', after, 64)
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return text
	}
}

func signed(x float64) string {
	text := number(x)
	if x > 0 && text != "0" {
		return "+" + text
	}
	return text
}
