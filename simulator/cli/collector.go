package cli

import (
	"os"
	"runtime/debug"
)

// rareCollection is how much memory may be dead, in per cent of what is in use, before it is collected.
const rareCollection = 400

// collectRarely has the memory of a process that plays scenarios collected a quarter as often as usual, unless GOGC says how often. What a decision
// leaves behind is dead at once, and to find that out costs a third of the processor time, since scenes are long-lived.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(rareCollection)
	}
}
