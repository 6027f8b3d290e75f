package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

const smallFleet = `apiVersion: simulator.lockstep.dev/v1alpha1
kind: Fleet
metadata: {name: small}
spec:
  about: three machines
  groups:
  - name: h100-{node}
    counters: [{name: node, count: 2}]
    labels: {fabric.topograph.run/tier-0: leaf-1}
    capacity: {cpu: 224, memory: 2000Gi}
    devices: [h100-8]
    deviations: [{from: 2, cordoned: true, occupied: [gpu-3]}]
  - name: old
    capacity: {cpu: 32, memory: 240Gi, nvidia.com/gpu: 1}
`

// writeFleet is a file with the small fleet.
func writeFleet(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(smallFleet), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFleetList_PrintsTableOrOneObject(t *testing.T) {
	code, out, stderr := execute(t, "fleet", "list", "-o", "json")
	var answer struct {
		Fleets []struct {
			Name         string
			Nodes        int
			Accelerators int64
			About        string
			Default      bool
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit %d, %v, %s", code, err, stderr)
	}
	var names []string
	for _, one := range answer.Fleets {
		names = append(names, one.Name)
		if one.Default != (one.Name == fleet.Default) || one.Nodes == 0 || one.Accelerators == 0 || one.About == "" {
			t.Errorf("%+v", one)
		}
	}
	if !slices.Equal(names, fleet.Names()) {
		t.Errorf("the fleets are %v, want %v", names, fleet.Names())
	}
}

func TestFleetShow_PrintsLevelsAndNodes(t *testing.T) {
	file := writeFleet(t)
	code, out, stderr := execute(t, "fleet", "show", file)
	want := `small: 3 nodes, 17 accelerators, 1 cordoned
three machines

LEVEL   LABEL                        DOMAINS  NODES IN EACH  WITHOUT
tier-0  fabric.topograph.run/tier-0  1        2              1
node    kubernetes.io/hostname       3        1              0

NODES  NAMES   CORDONED  CAPACITY OF EACH                      DEVICES OF EACH
1      h100-*  0         cpu=224 memory=2000Gi                 8 dra.net, 8 gpu.nvidia.com/gpu
1      h100-*  1         cpu=224 memory=2000Gi                 8 dra.net, 8 gpu.nvidia.com/gpu (1 occupied)
1      old     0         cpu=32 memory=240Gi nvidia.com/gpu=1  -

capacity of all nodes: cpu=480 memory=4240Gi nvidia.com/gpu=1
device classes: dranet.net, gpu.nvidia.com, mig.nvidia.com
`
	if code != 0 || stderr != "" || out != want {
		t.Errorf("exit %d, %s\n%s", code, stderr, out)
	}
	code, out, _ = execute(t, "fleet", "show", file, "-o", "json")
	var survey fleet.Survey
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&survey); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	if survey.Accelerators != 17 || len(survey.Groups) != 3 || len(survey.Levels) != 1 ||
		survey.Groups[1].Cordoned != 1 {
		t.Errorf("%+v", survey)
	}
}

// A generated fleet is shown as its source is, and generated again it has the same bytes.
func TestFleetGenerate_WritesWhatUpReads(t *testing.T) {
	file := writeFleet(t)
	written := filepath.Join(t.TempDir(), "small.yaml")
	code, out, stderr := execute(t, "fleet", "generate", file, "-o", written)
	if code != 0 || out != "" || !strings.HasSuffix(stderr, ": 3 nodes, 3 device classes, 4 resource slices\n") {
		t.Fatalf("exit %d, %q, %q", code, out, stderr)
	}
	content, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ = execute(t, "fleet", "generate", written, "-o", "-"); code != 0 || out != string(content) {
		t.Error("generated again, it has other bytes")
	}
	_, first, _ := execute(t, "fleet", "show", file)
	_, second, _ := execute(t, "fleet", "show", written)
	if strings.Replace(first, "three machines\n", "", 1) != second {
		t.Errorf("shown as another fleet:\n%s\n%s", first, second)
	}
}

// An existing file is left unchanged, and nothing is left beside it, when the fleet cannot be used.
func TestFleetGenerate_LeavesNoHalfFile(t *testing.T) {
	dir := t.TempDir()
	bad, kept := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "kept.yaml")
	for file, text := range map[string]string{
		bad: strings.Replace(smallFleet, "[h100-8]", "[h100-9]", 1), kept: "as it was",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, stderr := execute(t, "fleet", "generate", bad, "-o", kept)
	if code != 2 || out != "" || !strings.Contains(stderr, `bad.yaml:11: device model "h100-9" is not known`) {
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(kept); err != nil || string(content) != "as it was" || len(entries) != 2 {
		t.Errorf("the file is %q now, %v, beside %v", content, err, entries)
	}
}

func TestFleet_RefusesInOneLine(t *testing.T) {
	file := writeFleet(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"fleet", "show", "c99"}, `fleet "c99": there is no built-in fleet and no file of that name`},
		{[]string{"fleet", "show"}, "fleet show: accepts 1 arg(s), received 0"},
		{[]string{"fleet", "show", "c1", "-o", "yaml"}, "-o yaml: there is no such form; use text or json"},
		{[]string{"fleet", "list", "-o", "yaml"}, "-o yaml: there is no such form; use text or json"},
		{[]string{"fleet", "list", "c1"}, "fleet list: "},
		{[]string{"fleet", "lst"}, "fleet: "},
		{[]string{"fleet", "generate", file}, "-o: no file is named; add -o fleet.yaml"},
		{[]string{"fleet", "generate", file, "-o", "small.yaml.gz"}, "-o small.yaml.gz: fleets are not read from compressed files"},
		{[]string{"fleet", "generate", file, "-o", t.TempDir()}, "it is a directory; name a file"},
	} {
		code, out, stderr := execute(t, test.args...)
		line, rest, _ := strings.Cut(stderr, "\n")
		if code != 2 || out != "" || rest != "" || !strings.Contains(line, test.want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %s\nwant %s", test.args, code, out, stderr, test.want)
		}
	}
}
