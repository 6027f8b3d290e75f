package topology_test

import (
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

func TestParseExitCodes(t *testing.T) {
	codes, err := topology.ParseExitCodes("3=fatal, 40-44=retry, 137=other-node")
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int32]topology.ExitAction{
		1: topology.ExitRetry, 3: topology.ExitFatal, 42: topology.ExitRetry, 137: topology.ExitOtherNode,
	} {
		if got := codes.Action(code); got != want {
			t.Errorf("exit code %d means %s, want %s", code, got, want)
		}
	}
	if fatal, others := codes.Fatal(); !slices.Equal(fatal, []int32{3}) || others {
		t.Errorf("fatal are %v, others %v", fatal, others)
	}

	codes, err = topology.ParseExitCodes("*=fatal,42=retry,41=other-node,5=fatal")
	if err != nil {
		t.Fatal(err)
	}
	if spared, others := codes.Fatal(); !slices.Equal(spared, []int32{41, 42}) || !others {
		t.Errorf("not fatal are %v, others %v", spared, others)
	}
	if got := codes.Action(7); got != topology.ExitFatal {
		t.Errorf("exit code 7 means %s", got)
	}
	if got := (topology.ExitCodes{}).Action(7); got != topology.ExitRetry {
		t.Errorf("of nothing said, exit code 7 means %s", got)
	}
}

func TestParseExitCodes_Refusals(t *testing.T) {
	for text, want := range map[string]string{
		"":                   `"" is not code=retry, code=fatal or code=other-node`,
		"3":                  `"3" is not code=retry, code=fatal or code=other-node`,
		"3=ignore":           `"3=ignore" is not code=retry, code=fatal or code=other-node`,
		"0=fatal":            `"0" is no exit code from 1 to 255`,
		"256=fatal":          `"256" is no exit code from 1 to 255`,
		"9-3=fatal":          `"9-3" begins above its end`,
		"3=fatal,1-5=retry":  "exit code 3 is there twice",
		"*=fatal,*=retry":    "* is there twice",
		"one=fatal":          `"one" is no exit code from 1 to 255`,
		"3=fatal,,4=fatal":   `"" is not code=retry, code=fatal or code=other-node`,
		"3-=fatal":           `"" is no exit code from 1 to 255`,
		"-3=fatal":           `"" is no exit code from 1 to 255`,
		"3=fatal; 4=retry":   `"3=fatal; 4=retry" is not code=retry, code=fatal or code=other-node`,
		"3=FATAL":            `"3=FATAL" is not code=retry, code=fatal or code=other-node`,
		" 3 = fatal":         `" 3 = fatal" is not code=retry, code=fatal or code=other-node`,
		"3=other-node=fatal": `"3=other-node=fatal" is not code=retry, code=fatal or code=other-node`,
	} {
		if _, err := topology.ParseExitCodes(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
