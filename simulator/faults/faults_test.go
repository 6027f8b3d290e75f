package faults_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/faults"
)

var (
	seeds  = flag.Uint64("seeds", 100, "how many seeds are played")
	first  = flag.Uint64("first", 0, "the first of them")
	out    = flag.String("log", "", "a file for what happens, of the last seed")
	shrink = flag.Bool("shrink", true, "make a scene smaller that breaks something")
	twice  = flag.Uint64("twice", 20, "how many seeds, from the first, are played twice")
	until  = flag.Bool("until", false, "play until an invariant breaks, and no further")
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(
		400,
	) // a seed needs little memory, and a quarter of the time was spent on its collection
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2) // its goroutine must not be one of a bubble
	m.Run()
}

// play plays a scene. Events are written to the log, nil for none.
func play(t *testing.T, scene faults.Scene, log io.Writer) faults.Result {
	t.Helper()
	var result faults.Result
	bubble := faults.Bubble{Clock: clock.RealClock{}, Still: synctest.Wait}
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		var err error
		if result, err = faults.Play(t.Context(), scene, bubble, log); err != nil {
			t.Fatal(err)
		}
	})
	return result
}

// breaks reports whether a scene breaks an invariant.
func breaks(t *testing.T, of faults.Invariant) func(faults.Scene) bool {
	t.Helper()
	return func(scene faults.Scene) bool {
		return slices.ContainsFunc(
			play(t, scene, nil).Broken,
			func(v faults.Violation) bool { return v.Invariant == of },
		)
	}
}

// No invariant breaks under any fault. A scene that breaks one is reduced, and played once more for its log, which is
// the same each time.
func TestSeeds(t *testing.T) {
	began := processor(t)
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			scene := faults.Draw(seed)
			result := play(t, scene, nil)
			if len(result.Broken) == 0 && *out == "" {
				return
			}
			for _, broken := range result.Broken {
				t.Error(broken)
			}
			if len(result.Broken) > 0 && *shrink {
				scene = faults.Shrink(scene, breaks(t, result.Broken[0].Invariant))
			}
			t.Logf("\n%s", &scene)
			t.Logf("with a log: go test ./simulator/faults -run TestSeeds -args -first %d -seeds 1 -log FILE", seed)
			var log bytes.Buffer
			play(t, scene, &log)
			if *out != "" {
				if err := os.WriteFile(*out, log.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	t.Logf("%v of processor time a seed", (processor(t)-began)/time.Duration(*seeds))
}

// processor returns the processor time that this process has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A scene that is played twice gives the same log, byte for byte.
func TestPlay_IsTheSameEachTime(t *testing.T) {
	for seed := *first; seed < *first+*twice; seed++ {
		var logs [2]bytes.Buffer
		for i := range logs {
			play(t, faults.Draw(seed), &logs[i])
		}
		a, b := bytes.Split(logs[0].Bytes(), []byte("\n")), bytes.Split(logs[1].Bytes(), []byte("\n"))
		for i := range min(len(a), len(b)) {
			if !bytes.Equal(a[i], b[i]) {
				t.Fatalf("seed %d, line %d: %s, and then %s", seed, i+1, a[i], b[i])
			}
		}
		if len(a) != len(b) {
			t.Errorf("seed %d: %d lines, and then %d", seed, len(a), len(b))
		}
	}
}

// The text of a scene parses as the same scene.
func TestParse(t *testing.T) {
	for seed := range uint64(200) {
		scene := faults.Draw(seed)
		read, err := faults.Parse("# drawn\n\n" + scene.String())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(read, scene) {
			t.Fatalf("%s\nreads as\n%s", &scene, &read)
		}
	}
	for text, want := range map[string]string{
		"":                                   "no machines",
		"seed=1 racks=x nodes=1 gpus=1":      "line 1: racks is no number: x",
		"seed=1 racks=1 nodes=1 gpus=1\njob": "line 2: a job without a name",
		"seed=1 racks=1 nodes=1 gpus=1\njob a at=soon": "line 2: at is no duration: soon",
	} {
		if _, err := faults.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Scenes that have broken something once do so no more. Each was found by a seed and made smaller.
func TestScenes(t *testing.T) {
	files, err := filepath.Glob("testdata/scenes/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenes", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			scene, err := faults.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			for _, broken := range play(t, scene, &log).Broken {
				t.Error(broken)
			}
			if *out != "" {
				if err := os.WriteFile(*out, log.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestUntilBroken plays seeds until an invariant breaks, for TestBugs.
func TestUntilBroken(t *testing.T) {
	if !*until {
		t.Skip("-until is not set")
	}
	for seed := *first; seed < *first+*seeds; seed++ {
		scene := faults.Draw(seed)
		broken := play(t, scene, nil).Broken
		if len(broken) == 0 {
			continue
		}
		for _, b := range broken {
			fmt.Printf("seed %d: %s\n", seed, b) //nolint:forbidigo // TestBugs reads it
		}
		if *shrink {
			smaller := faults.Shrink(scene, breaks(t, broken[0].Invariant))
			fmt.Println(&smaller) //nolint:forbidigo // as above
		}
		t.FailNow()
	}
}
