package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// heard are log lines of goroutines that run at once, until all stand still. Those of an instant are sorted by their
// text then, since goroutines have no order.
type heard struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	lines []line
}

type line struct {
	at   time.Time
	text string
}

func (h *heard) add(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line{h.clock.Now(), text})
}

func (h *heard) take() []line {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text)) })
	return lines
}

// ear is the log of a process. Unlike other sinks it prints maps in the order of their keys. Log lines of goroutines
// while their process is being taken apart are dropped: they run at once there, and a process that is killed logs
// nothing.
type ear struct {
	of      *heard
	process *wire.Process
	values  []any
}

var _ logr.LogSink = ear{}

// loud is up to which verbosity is heard.
const loud = 4

// Init does nothing.
func (ear) Init(logr.RuntimeInfo) {}

// Enabled reports whether the level is heard.
func (ear) Enabled(level int) bool { return level <= loud }

// Info hears a line.
func (e ear) Info(_ int, text string, values ...any) { e.hear(text, values) }

// Error hears a line about an error.
func (e ear) Error(err error, text string, values ...any) {
	e.hear(text, append([]any{"error", err}, values...))
}

func (e ear) hear(text string, values []any) {
	if e.process.Dead() {
		return
	}
	var line strings.Builder
	line.WriteString(text)
	all := slices.Concat(values, e.values)
	for i := 0; i+1 < len(all); i += 2 {
		fmt.Fprintf(&line, " %v=%v", all[i], all[i+1])
	}
	e.of.add(line.String())
}

// WithValues returns an ear that adds values.
func (e ear) WithValues(values ...any) logr.LogSink { //nolint:ireturn // as declared
	e.values = slices.Concat(e.values, values)
	return e
}

// WithName returns the same.
func (e ear) WithName(string) logr.LogSink { return e } //nolint:ireturn // as declared
