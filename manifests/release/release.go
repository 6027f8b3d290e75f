// Package release identifies the build of Lockstep in a binary: the version that the Go toolchain recorded, and the
// release of the Kubernetes packages in it.
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
	// Version is the repository's tag, or Go's pseudo-version for an untagged commit; "devel" if the build was not
	// stamped.
	Version string
	// Commit is the full hash of the commit; "unknown" if the build was not stamped. Changed reports uncommitted
	// changes.
	Commit  string
	Changed bool
	// Kubernetes is the release of the Kubernetes packages in it.
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

// Tag is the version as the tag of an image, where a plus sign cannot be; empty if the build was not stamped.
func (b Build) Tag() string {
	if b.Version == "devel" {
		return ""
	}
	return strings.ReplaceAll(b.Version, "+", "-")
}

// Short is the commit in twelve digits, with a plus sign if something was changed since.
func (b Build) Short() string {
	short := b.Commit[:min(12, len(b.Commit))]
	if b.Changed {
		short += "+"
	}
	return short
}

// Line returns the line that the command prints for --version.
func (b Build) Line(command string) string {
	return fmt.Sprintf("%s %s (commit %s, Kubernetes %s, %s %s/%s)",
		command, b.Version, b.Short(), b.Kubernetes, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
