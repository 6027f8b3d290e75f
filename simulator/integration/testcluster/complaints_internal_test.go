package testcluster

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A refusal by a role, or a panic, fails the tests of a cluster; a late Event in a namespace that goes does not.
func TestComplaints_AreThoseOfRoles(t *testing.T) {
	const late = `"Server rejected event" err="events.events.k8s.io \"a\" is forbidden: unable to create new content in ` +
		`namespace gone because it is being terminated"`
	for content, want := range map[string]int{
		"I1201 all is well\n": 0,
		late + "\n":           0,
		late + "\n" + `pods is forbidden: User "system:serviceaccount:a:b" cannot list resource "pods"` + "\n": 1,
		"panic: runtime error\n": 1,
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := complaintsIn(Setting{Out: io.Discard}, "component", file); got != want {
			t.Errorf("%q gives %d, want %d", content, got, want)
		}
	}
}
