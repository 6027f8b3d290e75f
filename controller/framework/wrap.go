package framework

import (
	_ "embed" // the scripts
	"strings"
)

var (
	//go:embed scripts/per-gpu.sh
	perGPUScript string
	//go:embed scripts/await-names.sh
	awaitNamesScript string
)

// namesPatience limits the seconds for which a pod waits for the names of others. DNS has a name about a second after
// its pod's start, or up to half a minute after an early query.
const namesPatience = "180"

// Wrap puts words before the command of the main container of one ReplicatedJob, so that the image's own shell runs
// something before it. A container without a command runs its image's entrypoint, which the planner does not know, and
// is not changed.
type Wrap struct {
	// Role is the ReplicatedJob's name; empty for that of the trainer.
	Role string
	// Words run a script with the container's command and arguments after them.
	Words []string
	// Drop is a word that the command of earlier releases began with; empty if there was none.
	Drop string
	// Missing warns the owner where the container has no command.
	Missing string
}

// shellWords returns the words that run a script with the image's shell and these arguments, to which the container's
// command and arguments are added. Comments stay here: each pod of a job carries the script.
func shellWords(name, text string, args ...string) []string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && strings.TrimSpace(line) != "" {
			lines.WriteString(line)
		}
	}
	return append([]string{"sh", "-c", lines.String(), name}, args...)
}

// command is the trainer's own command, of the job or else of the runtime; empty if the image's entrypoint runs.
func (w Input) command() []string {
	if w.JobCommand != nil {
		return w.JobCommand
	}
	return w.Command
}
