package stepped_test

import (
	"runtime/debug"
	"strings"
	"testing"
)

// queue.go reads private state of kube-scheduler. A change of the pin requires a new look at the fields by name, at the
// two functions behind link names, and at the goroutines of scheduler.Run whose work bringBack does by hand.
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
