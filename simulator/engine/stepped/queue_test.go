package stepped_test

import (
	"runtime/debug"
	"strings"
	"testing"
)

// queue.go reads what kube-scheduler does not show. Whoever changes the pin has to look at it again: at the fields by name, at the
// two functions behind link names, and at what scheduler.Run starts that is done by hand in bringBack.
func TestQueue_IsAsItWas(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" && !strings.HasPrefix(m.Version, "v1.37.2") {
			t.Errorf("k8s.io/kubernetes is %s: look at queue.go, then change this test", m.Version)
		}
	}
}
