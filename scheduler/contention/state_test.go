package contention_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// A scheduler continues with the state of the release before, and that one with ours after a rollback: fields retain
// their stored names.
func TestState_StoredNamesAreThoseOfEarlierReleases(t *testing.T) {
	var state contention.State
	if err := json.Unmarshal([]byte(`{"Leases":[{"Owner":"team/train","Told":7200}]}`), &state); err != nil {
		t.Fatal(err)
	}
	if len(state.Leases) != 1 || state.Leases[0].Promised != 7200 {
		t.Errorf("read as %+v", state.Leases)
	}
	if text, err := json.Marshal(state); err != nil || !strings.Contains(string(text), `"Told":7200`) {
		t.Errorf("written as %s, %v", text, err)
	}
}
