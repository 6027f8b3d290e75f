package cli

import (
	"os"
	"runtime/debug"
)

// rareCollection is how much memory may be dead, in per cent of what is in use, before it is collected.
const rareCollection = 400

// collectRarely has the memory of a process that plays scenarios collected a quarter as often as usual, unless GOGC says how often. Decisions allocate what is
// dead at once, beside a scene that is marked anew each time. It is a tenth faster and takes more memory (make bench-before).
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(rareCollection)
	}
}
