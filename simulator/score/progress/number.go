package progress

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"
)

// number is any integer that is counted.
type number interface{ ~int | ~int64 | ~uint64 }

// grouped writes thousands apart: 41,000.
func grouped[N number](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// counted returns a number of things in words: 1 node, 2 nodes.
func counted[N number](n N, what string) string {
	return grouped(n) + " " + noun(n, what)
}

// noun is a word for so many.
func noun[N number](n N, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// short writes a number with three digits at most and a letter for thousands: 0.3, 12, 940, 1.2k, 38M.
func short(f float64) string {
	letter, n := "", f
	for _, next := range []string{"k", "M", "G"} {
		if n < 999.5 {
			break
		}
		n, letter = n/1000, next
	}
	digits := 0
	if n < 9.95 && (letter != "" || n != math.Trunc(n)) {
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + letter
}

// percent is a part of a whole, rounded down, so that only the whole is 100.
func percent(part, whole int) int {
	return int(int64(part) * 100 / int64(cmp.Or(whole, 1)))
}

// span writes a duration with its two largest units: 3d04h, 4h05m, 5m10s, 12s.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	seconds := int64(d.Seconds())
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, seconds%60)
	}
	return strconv.FormatInt(seconds, 10) + "s"
}

// latency writes the time of a decision, in milliseconds with two or three digits: 0.21ms, 8.1ms, 120ms.
func latency(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	digits := 0
	switch {
	case ms < 0.995:
		digits = 2
	case ms < 9.95:
		digits = 1
	}
	if ms > 0 && ms < 0.005 {
		return "<0.01ms"
	}
	return strconv.FormatFloat(ms, 'f', digits, 64) + "ms"
}
