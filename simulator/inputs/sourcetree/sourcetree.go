// Package sourcetree finds the source tree from which programs are built, and whose files tests read and write.
package sourcetree

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// Module is the path of our module.
const Module = "github.com/lockstep-project/lockstep"

// Root finds the root of our module above the executable or the working directory. That there is none is bad input.
func Root() (string, error) {
	var starts []string
	if executable, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(executable))
	}
	if here, err := os.Getwd(); err == nil {
		starts = append(starts, here)
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err == nil && strings.HasPrefix(string(content), "module "+Module+"\n") {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", badinput.At(strings.Join(starts, ", "), 0, "no Lockstep source tree found there or above",
		"the embedded cluster is built from source: run lockstep inside its checkout")
}
