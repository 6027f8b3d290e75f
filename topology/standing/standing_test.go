package standing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/topology/standing"
)

func TestStanding_ReadsWell(t *testing.T) {
	t.Parallel()
	const start = "2026-11-24T10:00:00Z"
	for want, said := range map[string]interface{ String() string }{
		"16 nodes in su-1/leaf-3, quality 0.97":    standing.Place{Nodes: 16, Domain: "su-1/leaf-3", Quality: 0.97},
		"nodes that the scheduler's filters chose": standing.Place{},
		"position 3": standing.Turn{Position: 3},
		"position 1; place reserved in su-1; estimated to start at 2026-11-24T10:00:00Z": standing.Turn{
			Position: 1, Reserved: "su-1", Start: start, Estimated: true,
		},
		"position 1; place, open to others, in cluster; to start at 2026-11-24T10:00:00Z": standing.Turn{
			Position: 1, Reserved: "cluster", Open: true, Start: start,
		},
	} {
		if got := said.String(); got != want {
			t.Errorf("%#v is printed as %q, want %q", said, got, want)
		}
	}
}

// domains are paths of label values, which have no other characters than these.
func domains() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?(/(-|[A-Za-z0-9]+)){0,3}`)
}

func TestStanding_IsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		place := standing.Place{}
		if rapid.Bool().Draw(t, "planned") {
			place.Nodes, place.Domain = rapid.IntRange(1, 1e6).Draw(t, "nodes"), domains().Draw(t, "domain")
			place.Quality = float64(rapid.IntRange(1, 100).Draw(t, "percent")) / 100
		}
		if got, err := standing.ParsePlace(place.String()); err != nil || got != place {
			t.Fatalf("%q is read as %#v, %v", place, got, err)
		}
		turn := standing.Turn{Position: rapid.IntRange(1, 1e6).Draw(t, "position")}
		if rapid.Bool().Draw(t, "reserved") {
			turn.Reserved, turn.Open = domains().Draw(t, "domain"), rapid.Bool().Draw(t, "open")
		}
		if rapid.Bool().Draw(t, "known") {
			turn.Start = rapid.StringMatching(`2\d{3}-1[0-2]-2\dT2[0-3]:[0-5]\d:[0-5]\dZ`).Draw(t, "start")
			turn.Estimated = rapid.Bool().Draw(t, "estimated")
		}
		got, err := standing.ParseTurn(turn.String())
		if diff := cmp.Diff(turn, got); err != nil || diff != "" {
			t.Fatalf("%q is read otherwise: %v\n%s", turn, err, diff)
		}
	})
}

func TestStanding_WithoutInstants(t *testing.T) {
	t.Parallel()
	const at = "2026-11-24T10:00:00Z"
	for _, message := range []string{
		"no room; a place is reserved for it in su-1" + standing.ExpectedAt(at),
		"no room; a place is reserved for it in su-1" + standing.EstimatedAt(at),
		"no room; a place is reserved for it in su-1",
	} {
		const want = "no room; a place is reserved for it in su-1"
		if got := standing.WithoutInstants(message); got != want {
			t.Errorf("%q without instants is %q, want %q", message, got, want)
		}
	}
	said := "reserved for ns/a" + standing.Until(at) + "; waits until all are there"
	const want = "reserved for ns/a; waits until all are there"
	if got := standing.WithoutInstants(said); got != want {
		t.Errorf("%q without instants is %q, want %q", said, got, want)
	}
}

func TestStanding_ForeignTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "nodes", "x nodes", "99999999999999999999 nodes in a, quality 1.00", "4 nodes in a, quality 12"} {
		if got, err := standing.ParsePlace(text); err == nil {
			t.Errorf("%q is read as %#v", text, got)
		}
	}
	for _, text := range []string{"", "position x", "position 1; to start at high noon", "position 99999999999999999999"} {
		if got, err := standing.ParseTurn(text); err == nil {
			t.Errorf("%q is read as %#v", text, got)
		}
	}
}

func TestInstantIn(t *testing.T) {
	t.Parallel()
	const at = "2026-11-24T10:00:00Z"
	for message, want := range map[string]string{
		"no room": "",
		"no room; a place is reserved for it in su-1" + standing.ExpectedAt(at):                at,
		"reserved for a/b" + standing.Until(at) + standing.EstimatedAt("2027-11-24T10:00:00Z"): at,
	} {
		if got := standing.InstantIn(message); got != want {
			t.Errorf("%q has the instant %q, want %q", message, got, want)
		}
	}
}
