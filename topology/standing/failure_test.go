package standing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/topology/standing"
)

func TestFailure_String(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]standing.Failure{
		"rank 3 (pod train-node-0-3-x7k2p on node n17): container node ended with exit code 1 (Error): ValueError: no data": {
			Rank: 3, Pod: "train-node-0-3-x7k2p", Node: "n17", Container: "node", ExitCode: 1, Reason: "Error", Message: "ValueError: no data",
		},
		"pod worker on node n1: failed (OutOfcpu)": {Rank: -1, Pod: "worker", Node: "n1", Reason: "OutOfcpu"},
	} {
		if got := failure.String(); got != want {
			t.Errorf("%#v is printed as %q, want %q", failure, got, want)
		}
	}
	if _, err := standing.ParseFailure("it failed"); err == nil {
		t.Error("any text is a failure")
	}
}

func TestFailure_IsReadBack(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[a-z]([-a-z0-9.]{0,20}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		failure := standing.Failure{
			Rank: rapid.IntRange(-1, 1e6).Draw(t, "rank"), Pod: name.Draw(t, "pod"), Node: name.Draw(t, "node"),
			Reason:  rapid.StringMatching(`([A-Z][a-zA-Z]{1,12})?`).Draw(t, "reason"),
			Message: rapid.StringMatching(`([a-z()]+[: a-z()\n]*)?`).Draw(t, "message"),
		}
		if rapid.Bool().Draw(t, "exited") {
			failure.Container, failure.ExitCode = name.Draw(t, "container"), rapid.Int32().Draw(t, "code")
		}
		got, err := standing.ParseFailure(failure.String())
		if diff := cmp.Diff(failure, got); err != nil || diff != "" {
			t.Fatalf("%q is read otherwise: %v\n%s", failure, err, diff)
		}
	})
}
