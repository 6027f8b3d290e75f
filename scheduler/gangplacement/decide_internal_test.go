package gangplacement

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// The message of a gang that waits for the places of others names those of its own namespace, and the number of those
// of other tenants.
func TestBesideLeases_NamesNoOtherTenant(t *testing.T) {
	t.Parallel()
	id := func(namespace, name string) contention.ID {
		return waiting.IDOf(types.NamespacedName{Namespace: namespace, Name: name})
	}
	single := waiting.IDOfSingle(types.NamespacedName{Namespace: "secret-project", Name: "notebook"})
	const reserved = "the nodes that would hold it are reserved for "
	for name, c := range map[string]struct {
		of   []contention.ID
		at   int64
		want string
	}{
		"its own namespace's": {[]contention.ID{id("team-a", "first"), id("team-a", "second")}, contention.None, "team-a/first, team-a/second"},
		"another tenant's":    {[]contention.ID{id("secret-project", "gpt")}, contention.None, "1 of other namespaces"},
		"another tenant's pod": {
			[]contention.ID{single}, 1764000000, "1 of other namespaces until 2025-11-24T16:00:00Z",
		},
		"both": {
			[]contention.ID{id("secret-project", "gpt"), id("team-a", "first"), single, id("team-a-secret-project", "x")},
			contention.None, "team-a/first, 3 of other namespaces",
		},
	} {
		got := besideLeases("team-a", contention.Wait{Of: c.of, At: c.at})
		if got != reserved+c.want || strings.Contains(got, "secret-project") {
			t.Errorf("%s: %q, want %q", name, got, reserved+c.want)
		}
	}
}
