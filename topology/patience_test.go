package topology_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

func TestParsePatience(t *testing.T) {
	for text, want := range map[string]int64{"1s": 1, "90s": 90, "20m": 1200, "24h": 86400} {
		if got, err := topology.ParsePatience(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": `"" is no integer with the unit s, m or h`, "5": `"5" is no integer with the unit s, m or h`,
		"1.5h": `"1.5h" is no integer with the unit s, m or h`, "s": `"s" is no integer with the unit s, m or h`,
		"0s": "0s is not between 1s and 24h", "25h": "25h is not between 1s and 24h", "-1m": "-1m is not between 1s and 24h",
	} {
		if _, err := topology.ParsePatience(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
