package report_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/report"
)

// saved writes a page into a file, as a user has it.
func saved(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// blank counts canvases that nothing was drawn on.
const blank = `[...document.querySelectorAll("canvas")].filter((c) =>
  !c.width || !new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer).some((v) => v)).length`

// view is the setting in which a page is viewed.
type view struct {
	scheme string
	width  int
}

// views are a laptop by day and by night, something narrow, and a phone.
func views() []view { return []view{{"light", 1280}, {"dark", 1280}, {"light", 700}, phone()} }

func phone() view { return view{"light", 360} }

// inspect opens a page in each view: it has to draw its canvases without a complaint or a request.
func inspect(t *testing.T, b *browser, file, name string, canvases int, looks ...view) {
	t.Helper()
	for _, as := range looks {
		b.requests = nil
		b.show(file, as.scheme, as.width)
		if n := b.evaluate(`document.querySelectorAll("canvas").length`); n != float64(canvases) {
			t.Errorf("%s: %v canvases, not %d", name, n, canvases)
		}
		if n := b.evaluate(blank); n != 0.0 {
			t.Errorf("%s, %s: nothing was drawn on %v canvases", name, as.scheme, n)
		}
		if wide := b.evaluate(`document.documentElement.scrollWidth`); wide != float64(as.width) {
			t.Errorf("%s: at a width of %d the page has one of %v", name, as.width, wide)
		}
		for _, url := range b.requests {
			if !strings.HasPrefix(url, "file://"+file) {
				t.Errorf("%s: the page asked for %s", name, url)
			}
		}
		if wide := b.evaluate(`document.scrollingElement.scrollWidth`); wide.(float64) > float64(as.width) {
			t.Errorf("%s: at a width of %d the page scrolls sideways: %v", name, as.width, wide)
		}
		switch as.width {
		case 1280:
			b.keep(name + "-" + as.scheme)
		case phone().width:
			b.keep(name + "-phone")
		}
	}
	if len(b.complaints) > 0 {
		t.Errorf("%s: the browser complains: %s", name, b.complaints)
	}
}

func TestBrowser_DrawsPages(t *testing.T) {
	b := open(t)
	in := example(t)
	file := saved(t, func(w io.Writer) error { return report.Write(w, in) })
	inspect(t, b, file, "run", 7, views()...) // six charts and the map
	b.print("run")

	t.Run("map", func(t *testing.T) { exploreMap(t, b) })

	strict := input(t, short(t), direct.Options{Discipline: direct.Strict}, "strict")
	table, err := compare.Runs([]measure.Scorecard{in.Card, strict.Card})
	if err != nil {
		t.Fatal(err)
	}
	inspect(t, b, saved(t, func(w io.Writer) error {
		return report.WriteComparison(w, report.Comparison{Table: table, Runs: []report.Input{in, strict}})
	}), "comparison", 3, view{"dark", 1280}, view{"light", 1280}, phone())

	at := map[string]float64{"80": 80.02, "90": 89.98, "95": 94.91, "100": 95.23, "110": 95.3, "130": 95.39}
	arrivals := measure.Scorecard{
		Scheduler: "fgd", Fleet: "openb", Trace: "openb default", Nodes: 1213, GPUs: 6212, Partial: "interrupted",
		AllocationAtArrival: at,
	}
	inspect(t, b, saved(t, func(w io.Writer) error {
		return report.Write(w, report.Input{Card: arrivals})
	}), "arrivals", 1, view{"light", 700})

	inspect(t, b, saved(t, func(w io.Writer) error {
		return report.Write(w, report.Input{Card: measure.Scorecard{Scheduler: "none", Partial: "ended at once"}})
	}), "nothing", 0, view{"light", 1280})
}

// exploreMap uses the map as people do: the slider, and the pointer over a node.
func exploreMap(t *testing.T, b *browser) {
	t.Helper()
	b.show(strings.TrimPrefix(b.evaluate(`location.href`).(string), "file://"), "light", 1280)
	const status, now = `document.querySelector(".status").textContent`, `document.querySelector(".now").textContent`
	before := b.evaluate(now)
	b.evaluate(`(() => {
	  const s = document.querySelector(".time");
	  s.value = 120;
	  s.dispatchEvent(new Event("input"));
	})()`)
	if after := b.evaluate(now); after == before || !strings.Contains(after.(string), "GPUs in use") {
		t.Errorf("the slider moved from %q to %q", before, after)
	}
	// Every spot of the map is hovered until one has a gang.
	b.evaluate(`(() => {
	  const canvas = document.querySelector(".map canvas"), box = canvas.getBoundingClientRect();
	  for (let y = 2; y < box.height; y += 3) for (let x = 2; x < box.width; x += 3) {
	    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
	    if (` + status + `.includes("members")) return;
	  }
	})()`)
	hovered, _ := b.evaluate(status).(string)
	if !strings.Contains(hovered, "job-") || !strings.Contains(hovered, "of research") {
		t.Errorf("hovered, the map says %q", hovered)
	}
	b.evaluate(`document.querySelector(".play").click()`)
	if said := b.evaluate(`document.querySelector(".play").getAttribute("aria-label")`); said != "Pause" {
		t.Errorf("played, the button says %v", said)
	}
	b.evaluate(`document.querySelector(".play").click()`)
}

// TestBrowser_PicturesOf576Nodes makes pictures for people in the folder LOCKSTEP_SCREENSHOTS.
func TestBrowser_PicturesOf576Nodes(t *testing.T) {
	if os.Getenv("LOCKSTEP_SCREENSHOTS") == "" {
		t.Skip("LOCKSTEP_SCREENSHOTS does not name a directory for the pictures")
	}
	s := days(t, "c3", "acme-kalos", 30, 3)
	in := input(t, s, direct.Options{}, "lockstep")
	strict := input(t, s, direct.Options{Discipline: direct.Strict}, "strict")
	table, err := compare.Runs([]measure.Scorecard{in.Card, strict.Card})
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	inspect(t, b, saved(t, func(w io.Writer) error { return report.Write(w, in) }), "c3", 7, views()...)
	b.print("c3")
	inspect(t, b, saved(t, func(w io.Writer) error {
		return report.WriteComparison(w, report.Comparison{Table: table, Runs: []report.Input{in, strict}})
	}), "c3-comparison", 3, views()...)
}

// TestBrowser_SeesWhatIsWrong is about the test: without it, a page that fails could pass.
func TestBrowser_SeesWhatIsWrong(t *testing.T) {
	b := open(t)
	file := saved(t, func(w io.Writer) error {
		_, err := io.WriteString(w, `<!doctype html><canvas></canvas><img src="http://127.0.0.1:1/x.png"><script>
document.documentElement.dataset.ready = "true"; setTimeout(() => { throw new Error("broken"); });</script>`)
		return err
	})
	b.show(file, "light", 1280)
	b.evaluate(`new Promise((done) => setTimeout(done, 100))`)
	if blanks := b.evaluate(blank); blanks != 1.0 {
		t.Errorf("%v empty canvases were seen", blanks)
	}
	if !strings.Contains(strings.Join(b.complaints, " "), "broken") {
		t.Errorf("the exception was not seen: %s", b.complaints)
	}
	if !strings.Contains(strings.Join(b.requests, " "), "http://127.0.0.1:1/x.png") {
		t.Errorf("the request was not seen: %s", b.requests)
	}
}
