// Package release says which build of Lockstep a binary is: what the Go toolchain wrote into it, and the release of Kubernetes that it is made of.
package release

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/component-base/version"
)

// Build is a build of Lockstep.
type Build struct {
	// Version is a tag of the repository, or what Go makes of a commit without one; "devel" if nobody noted it.
	Version string
	// Commit is what it was built from, "unknown" if nobody noted it. Changed says that something was changed since.
	Commit  string
	Changed bool
	// Kubernetes is the release whose parts are in it.
	Kubernetes string
}

// Current returns the build of this process.
func Current() Build {
	out := Build{Version: "devel", Commit: "unknown", Kubernetes: version.Get().GitVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	if v := strings.Trim(info.Main.Version, "()"); v != "" {
		out.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			out.Commit = s.Value
		case "vcs.modified":
			out.Changed = s.Value == "true"
		}
	}
	return out
}

// Short is the commit in twelve digits, with a plus sign if something was changed since.
func (b Build) Short() string {
	short := b.Commit[:min(12, len(b.Commit))]
	if b.Changed {
		short += "+"
	}
	return short
}

// Line is what a command of that name prints for --version.
func (b Build) Line(command string) string {
	return fmt.Sprintf("%s %s (commit %s, Kubernetes %s, %s %s/%s)",
		command, b.Version, b.Short(), b.Kubernetes, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
