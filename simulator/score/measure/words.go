package measure

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Lasting writes a duration in its two largest units, rounded to seconds: "3 h 20 min".
func Lasting(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	switch {
	case s < minute:
		return strconv.Itoa(s) + " s"
	case s < hour:
		return two(s/minute, "min", s%minute, "s")
	case s < day:
		return two(s/hour, "h", s%hour/minute, "min")
	}
	return two(s/day, "d", s%day/hour, "h")
}

func two(large int, unit string, small int, fraction string) string {
	if small == 0 {
		return fmt.Sprintf("%s %s", Count(large), unit)
	}
	return fmt.Sprintf("%s %s %d %s", Count(large), unit, small, fraction)
}

// Count writes an integer with commas between thousands.
func Count[I int | int64](n I) string {
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
