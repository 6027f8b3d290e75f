package report

import (
	"math"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// lasting writes a duration in its two largest units: "3 h 20 min".
func lasting(d time.Duration) string { return measure.Lasting(d) }

// span is lasting of seconds as the scorecard has them.
func span(seconds float64) string {
	if seconds > 0 && seconds < 1 {
		return number(seconds) + " s"
	}
	return lasting(time.Duration(min(seconds, math.MaxInt64/2e9) * float64(time.Second)))
}

// count writes an integer with commas between thousands.
func count[I int | int64](n I) string { return measure.Count(n) }

// counted writes a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
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
		if magnitude := math.Abs(v); v != 0 && (magnitude >= 100 || magnitude < 0.001) {
			return number(v)
		}
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return number(v) + " " + unit
}
