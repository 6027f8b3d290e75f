package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/explain"
)

// trays are the places of a rack of the snapshot.
const trays = 18

// clusterMap draws the racks of the snapshot: each tray with the rank that runs there, and the places that are
// reserved.
func clusterMap(t *testing.T) string {
	t.Helper()
	const top, left, width, height, gap = 54, 20, 150, 20, 22
	d := &drawing{width: left*2 + 4*width + 3*gap, height: top + trays*height + 66}
	at := func(node string) (x, y float64) {
		var rack, tray int
		if _, err := fmt.Sscanf(node, "rack-%d-tray-%d", &rack, &tray); err != nil {
			t.Fatalf("node %s: %v", node, err)
		}
		return float64(left + (rack-1)*(width+gap)), float64(top + (tray-1)*height)
	}
	for rack := range 4 {
		x := float64(left + rack*(width+gap))
		d.text(x+width/2, top-10, "middle", fmt.Sprintf("rack-%d, one NVLink domain", rack+1))
		for tray := range trays {
			d.rect(x, float64(top+tray*height), width, height-2, `fill="#f2f2f2" stroke="#ffffff"`)
		}
	}
	running, waiting := []string{"embed", "llama-base", "speech", "vision"}, []string{"pretrain", "sweep"}
	for _, name := range running {
		for _, rank := range gangOf(t, name).Where.Ranks {
			x, y := at(rank.Node)
			d.rect(x, y, width, height-2, fill(running, name))
			d.text(x+8, y+13, "start", fmt.Sprintf("%s %d", name, rank.Rank))
		}
	}
	var captions []string
	for _, name := range waiting {
		reserved := gangOf(t, name).Reserved
		var nodes []string
		for _, rank := range reserved.Where.Ranks {
			nodes = append(nodes, rank.Node)
		}
		slices.Sort(nodes)
		x, y := at(nodes[0])
		_, last := at(nodes[len(nodes)-1])
		d.rect(x-3, y-3, width+6, last-y+height+3, inReserve)
		captions = append(captions, fmt.Sprintf("%s needs %d trays and has the place with the dashed line, from %s on.",
			name, len(nodes), reserved.At.UTC().Format("15:04")))
	}
	d.text(left, 20, "start", "72 GB200 trays at 09:50: four gangs run with their ranks in order, two wait.")
	for i, caption := range captions {
		d.text(left, float64(top+trays*height+24+i*18), "start", caption)
	}
	return d.svg("A map of four racks: where four gangs run, and which places are reserved for two gangs that wait")
}

// gangOf returns the answer of lockstep explain about a gang of the snapshot.
func gangOf(t *testing.T, name string) explain.Gang {
	t.Helper()
	var out, notes bytes.Buffer
	cli.Run(t.Context(), []string{
		"explain",
		"trainjob",
		name,
		"-o",
		"json",
		"--snapshot",
		filepath.Join(root, "docs/examples/busy.snapshot.json.gz"),
	}, cli.Environment{Out: &out, Err: &notes, Clock: clock.RealClock{}})
	var answer explain.Answer
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Gangs) != 1 {
		t.Fatalf("explaining %s: %v\n%s", name, err, strings.TrimSpace(notes.String()))
	}
	return answer.Gangs[0]
}
