package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
	"github.com/lockstep-project/lockstep/simulator/report"
)

func TestExample(t *testing.T) {
	began := time.Now()
	s := workload(t, "c3", "acme-kalos", 30, 3)
	t.Log("scene", time.Since(began), len(s.Jobs))
	in := input(t, s, direct.Options{Discipline: direct.Backfill}, "lockstep")
	t.Log("run", time.Since(began))
	var out bytes.Buffer
	if err := report.Write(&out, in); err != nil {
		t.Fatal(err)
	}
	t.Log("report", time.Since(began), out.Len())
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.show(file, "light", 1280)
	b.keep("light")
	b.show(file, "dark", 1280)
	b.keep("dark")
	b.print("paper")
	t.Log(b.complaints, len(b.requests))
}
