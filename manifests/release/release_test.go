package release_test

import (
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/release"
)

func TestBuild_Line(t *testing.T) {
	b := release.Build{Version: "v1.2.3", Commit: "0123456789abcdef0123", Changed: true, Kubernetes: "v1.37.2"}
	if got := b.Line(
		"lockstep",
	); !strings.HasPrefix(
		got,
		"lockstep v1.2.3 (commit 0123456789ab+, Kubernetes v1.37.2, go1.",
	) {
		t.Errorf("it prints %q", got)
	}
}

// A test binary has no version, and reports that.
func TestCurrent(t *testing.T) {
	if b := release.Current(); b.Version == "" || b.Commit == "" || b.Kubernetes == "" {
		t.Errorf("this is %+v", b)
	}
}
