package docs_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/cli"
)

// happening is a line of the event log of a run.
type happening struct {
	T     int    `json:"t"`
	Kind  string `json:"kind"`
	Job   int    `json:"job"`
	Nodes []int  `json:"nodes"`
	From  *int   `json:"from"`
}

const (
	nodes  = 8
	length = 12600 // seconds that are drawn
	large  = 2     // the job that needs all nodes
)

// timelines draws the example of eight nodes as Lockstep and first-fit play it.
func timelines(t *testing.T) string {
	t.Helper()
	d := &drawing{width: 780, height: 470}
	jobs := strings.Split("a b large c d e f g h i", " ")
	for i, scheduler := range []string{"lockstep", "first-fit"} {
		const top, apart = 40, 215
		timeline(d, float64(top+i*apart), jobs, scheduler, eventsOf(t, scheduler))
	}
	d.text(
		90,
		462,
		"start",
		"Submitted: a and b at 0 min, large at 5 min (it needs all nodes), c to i from 10 min on. Dashed: reserved for large.",
	)
	return d.svg(
		"Ten jobs on eight nodes, played by Lockstep and by first-fit: with a reservation the large job starts after 60 minutes, without one after 160",
	)
}

// timeline draws one run: a row for each node, and a bar for each job on it.
func timeline(d *drawing, top float64, jobs []string, scheduler string, log []happening) {
	const left, width, height = 90.0, 650.0, 18.0
	x := func(seconds int) float64 { return left + width*float64(seconds)/length }
	for node := range nodes {
		y := top + float64(node)*height
		d.text(left-8, y+13, "end", fmt.Sprintf("rack-%d node %d", node/4+1, node%4+1))
	}
	for minutes := 0; minutes <= length/60; minutes += 30 {
		d.line(x(minutes*60), top, x(minutes*60), top+nodes*height)
		d.text(x(minutes*60), top+nodes*height+13, "middle", fmt.Sprintf("%d min", minutes))
	}
	ends, begin, waits := map[int]int{}, 0, 0
	for _, h := range log {
		if h.Kind == "ended" {
			ends[h.Job] = h.T
		}
	}
	for _, h := range log {
		switch {
		case h.Kind == "submitted" && h.Job == large:
			begin = h.T
		case h.Kind == "kept" && h.Job == large && h.From != nil:
			d.rect(x(h.T), top-2, x(*h.From)-x(h.T), nodes*height+2, inReserve)
		case h.Kind == "started":
			if h.Job == large {
				waits = h.T - begin
			}
			for _, node := range h.Nodes {
				y := top + float64(node)*height
				d.rect(x(h.T)+0.5, y, x(ends[h.Job])-x(h.T)-1, height-2, fill(jobs, jobs[h.Job]))
				d.text(x(h.T)+6, y+12, "start", jobs[h.Job])
			}
		}
	}
	d.text(left, top-10, "start", fmt.Sprintf("%s: large waits for %d minutes, all jobs for %d minutes in the mean",
		scheduler, waits/60, meanWait(log)/60))
}

// meanWait returns the mean time in seconds from submission to start.
func meanWait(log []happening) int {
	total, started := 0, 0
	for _, h := range log {
		switch h.Kind {
		case "submitted":
			total -= h.T
		case "started":
			total, started = total+h.T, started+1
		}
	}
	return total / started
}

// eventsOf returns the event log of the example's run.
func eventsOf(t *testing.T, scheduler string) []happening {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	var out bytes.Buffer
	code := cli.Run(t.Context(), []string{
		"simulate",
		"--fleet",
		filepath.Join(root, "docs/examples/eight.yaml"),
		"--trace",
		filepath.Join(root, "docs/examples/eight.jsonl"),
		"--scheduler",
		scheduler,
		"--progress",
		"none",
		"--out",
		dir,
	}, cli.Environment{Out: &out, Err: &out, Clock: clock.RealClock{}})
	if code != 0 {
		t.Fatalf("%s: exit %d\n%s", scheduler, code, out.String())
	}
	file, err := os.Open(filepath.Join(dir, "events.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	content, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var log []happening
	for lines := bufio.NewScanner(content); lines.Scan(); {
		var h happening
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		log = append(log, h)
	}
	return slices.Clip(log)
}
