package cli

import (
	"os"
	"runtime/debug"
)

// rareCollection is the share of dead memory, in per cent of the memory in use, before it is collected.
const rareCollection = 400

// collectRarely makes the garbage collector of a process that plays scenarios run a quarter as often as usual, unless
// GOGC is set. Decisions allocate short-lived objects next to a large scene, which each collection marks anew. This is
// a tenth faster and takes more memory (make bench-before).
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(rareCollection)
	}
}
