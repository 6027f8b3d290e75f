package results_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

// TestCreate_DiskFullAtAnyByte lets the disk be full after each number of bytes that a run can write: the result is
// then never taken for a whole one, and a reader gets the written part or a reason.
func TestCreate_DiskFullAtAnyByte(t *testing.T) {
	s, eventLog := played(t)
	long := slices.Repeat(eventLog, 18) // long enough for the log to be saved in between
	enough := newMemory(1 << 30)
	if err := write("out", s, long, results.Options{Disk: enough, Plain: true}, card()); err != nil {
		t.Fatal(err)
	}
	needed := 1<<30 - enough.room
	for room := 0; room < needed; room += 1 + needed/61 {
		disk, told := newMemory(room), 0
		err := write("out", s, long, results.Options{Disk: disk, Plain: true, Failed: func(error) { told++ }}, card())
		var failed *results.WriteError
		if !errors.As(err, &failed) || !errors.Is(err, syscall.ENOSPC) || badinput.Is(err) {
			t.Fatalf("%d bytes of room: %v", room, err)
		}
		if !strings.Contains(err.Error(), failed.File) || !strings.Contains(err.Error(), "make room") || told > 1 {
			t.Errorf("%d bytes of room: told %d times: %v", room, told, err)
		}
		if left := disk.left(); len(left) > 0 {
			t.Errorf("%d bytes of room: %v are left", room, left)
		}
		r, err := results.OpenOn(disk, "out")
		if err != nil {
			if !badinput.Is(err) {
				t.Errorf("%d bytes of room: %v", room, err)
			}
			continue
		}
		if r.Card.Partial == "" {
			t.Fatalf("%d bytes of room of %d: taken for a whole result", room, needed)
		}
		events, err := read(t, r)
		if err != nil || len(events) > len(long) {
			t.Fatalf("%d bytes of room: %d events, %v", room, len(events), err)
		}
		clone := cmp.Transformer("nil", func(n []int) []int { return slices.Clone(n) })
		if diff := cmp.Diff(long[:len(events)], events, clone); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestCreate_FailureCancelsTheRun(t *testing.T) {
	s, eventLog := played(t)
	disk := newMemory(1 << 30)
	ctx, cancel := context.WithCancelCause(t.Context())
	run, err := results.Create("out", s, results.Options{Disk: disk, Card: card(), Plain: true, Failed: cancel})
	if err != nil {
		t.Fatal(err)
	}
	disk.room = 1000
	for ctx.Err() == nil {
		run.Happens(eventLog[0])
	}
	if cause := context.Cause(ctx); !errors.Is(cause, syscall.ENOSPC) {
		t.Error(cause)
	}
	disk.room = 1 << 20 // room is made; the log has a hole all the same
	if err := run.Finish(card(), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("finished with %v", err)
	}
	r, err := results.OpenOn(disk, "out")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Card.Partial, "events.jsonl") {
		t.Errorf("partial because %q", r.Card.Partial)
	}
}

func TestOpen_KilledRunIsPartialAndReadable(t *testing.T) {
	s, eventLog := played(t)
	disk := newMemory(1 << 30)
	run, err := results.Create("out", s, results.Options{Disk: disk, Card: card()})
	if err != nil {
		t.Fatal(err)
	}
	told := slices.Repeat(eventLog, 60)
	for _, e := range told {
		run.Happens(e)
	}
	// No Finish: the process has died.
	r, err := results.OpenOn(disk, "out")
	if err != nil {
		t.Fatal(err)
	}
	if r.Card.Partial != results.Unfinished {
		t.Errorf("partial because %q", r.Card.Partial)
	}
	events, err := read(t, r)
	if err != nil || len(events) < len(told)/2 {
		t.Fatalf("%d of %d events, %v", len(events), len(told), err)
	}
	if diff := cmp.Diff(told[:len(events)], events); diff != "" {
		t.Error(diff)
	}
}

func TestOpen_CanceledRunSaysWhy(t *testing.T) {
	s, eventLog := played(t)
	dir := t.TempDir()
	last := card()
	last.Partial = "interrupted at 3h20m of virtual time"
	if err := write(dir, s, eventLog[:100], results.Options{}, last); err != nil {
		t.Fatal(err)
	}
	r, err := results.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := read(t, r); err != nil || len(events) != 100 || r.Card.Partial != last.Partial {
		t.Errorf("%d events, %v, partial because %q", len(events), err, r.Card.Partial)
	}
}

func TestFinish_FailedReportLeavesPartialMark(t *testing.T) {
	s, _ := played(t)
	disk := newMemory(1 << 30)
	run, err := results.Create("out", s, results.Options{Disk: disk, Card: card()})
	if err != nil {
		t.Fatal(err)
	}
	err = run.Finish(card(), func(io.Writer) error { return errors.New("no such chart") })
	if err == nil || !strings.Contains(err.Error(), "report.html") {
		t.Errorf("finished with %v", err)
	}
	if r, err := results.OpenOn(disk, "out"); err != nil || r.Card.Partial == "" {
		t.Errorf("partial because %q, %v", r.Card.Partial, err)
	}
	if _, there := disk.files["out/report.html"]; there {
		t.Error("half a report is there")
	}
}
