package cost

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Settings are the costs of a run. Factors are in thousandths of the published ones: 0 is off. The zero value costs
// nothing.
type Settings struct {
	// Network is the name of the network; empty for that of the fleet (NetworkFor).
	Network string `json:"network,omitempty"`
	// Slowdown multiplies the shares of communication, Startup the seconds of assembly and reload, Failures the rates
	// of failures.
	Slowdown int64 `json:"slowdown_thousandths"`
	Startup  int64 `json:"startup_thousandths"`
	Failures int64 `json:"failures_thousandths"`
	// Checkpoint is the time between two checkpoints of every job of a trace, in seconds; 0 for none.
	Checkpoint int64 `json:"checkpoint_seconds"`
	// Replace has gangs whose members lose their node replace these alone (lockstep.dev/on-disruption: replace).
	Replace bool `json:"replace,omitempty"`
}

// Off reports whether nothing costs time.
func (s Settings) Off() bool {
	s.Network = ""
	return s == Settings{}
}

// String describes the settings in a line.
func (s Settings) String() string {
	if s.Off() {
		return "off"
	}
	parts := []string{"slowdown " + Factor(s.Slowdown)}
	if s.Network != "" && s.Slowdown > 0 {
		parts[0] += " (" + s.Network + ")"
	}
	parts = append(parts, "startup "+Factor(s.Startup))
	if s.Checkpoint > 0 {
		parts = append(parts, fmt.Sprintf("a checkpoint every %d s", s.Checkpoint))
	} else {
		parts = append(parts, "no checkpoints")
	}
	parts = append(parts, "failures "+Factor(s.Failures))
	if s.Replace {
		parts = append(parts, "lost members are replaced")
	}
	return strings.Join(parts, ", ")
}

// Factor prints a factor as ParseFactor takes it.
func Factor(thousandths int64) string {
	switch thousandths {
	case 0:
		return "off"
	case thousand:
		return "on"
	}
	return strconv.FormatFloat(float64(thousandths)/thousand, 'g', -1, 64)
}

// mostFactor bounds factors: beyond, a mistake is more likely than a wish.
const mostFactor = 1000

// ParseFactor reads "off" (or ""), "on", "published" (the same), or a number from 0.001 to 1000 that multiplies the
// published value. It returns thousandths, and false for anything else.
func ParseFactor(text string) (int64, bool) {
	switch text {
	case "", "off", "0":
		return 0, true
	case "on", "published":
		return thousand, true
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n*thousand >= 1 && n <= mostFactor) {
		return 0, false
	}
	return int64(math.Round(n * thousand)), true
}
