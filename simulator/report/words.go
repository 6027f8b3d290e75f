package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// lasting says a duration in its two largest units: "3 h 20 min".
func lasting(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return two(int(d/time.Minute), "min", int(d%time.Minute/time.Second), "s")
	case d < day:
		return two(int(d/time.Hour), "h", int(d%time.Hour/time.Minute), "min")
	}
	return two(int(d/day), "d", int(d%day/time.Hour), "h")
}

const day = 24 * time.Hour

func two(large int, unit string, small int, fraction string) string {
	if small == 0 {
		return fmt.Sprintf("%s %s", count(large), unit)
	}
	return fmt.Sprintf("%s %s %d %s", count(large), unit, small, fraction)
}

// span is lasting of seconds as the scorecard has them.
func span(seconds float64) string {
	if seconds > 0 && seconds < 1 {
		return "< 1 s"
	}
	return lasting(time.Duration(min(seconds, math.MaxInt64/2e9) * float64(time.Second)))
}

// count writes an integer with commas between thousands.
func count[I int | int64](n I) string {
	text := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), ",")
}

// counted writes how many of a thing there are.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(n) + " " + thing
}

// number writes a number with as many digits as help.
func number(v float64) string {
	switch magnitude := math.Abs(v); {
	case v == math.Trunc(v) || magnitude >= 100:
		return count(int64(math.Round(v)))
	case magnitude >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case magnitude >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// percent writes a fraction in per cent.
func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

// said writes a number of the scorecard by the unit of its definition.
func said(unit string, v float64) string {
	switch unit {
	case "s":
		return span(v)
	case "":
		return number(v)
	case "1":
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return number(v) + " " + unit
}
