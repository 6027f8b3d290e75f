package faults_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-project/lockstep/simulator/faults"
)

var (
	seeds = flag.Uint64("seeds", 100, "how many seeds are played")
	first = flag.Uint64("first", 0, "the first of them")
	show  = flag.Bool("show", false, "print what happens")
	until = flag.Bool("until", false, "play until an invariant breaks, and no further")
)

func TestMain(m *testing.M) {
	flag.Parse()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2) // its goroutine must not be one of a bubble
	os.Exit(m.Run())
}

// play plays a scene. What happens is written to the log, nil for none.
func play(t *testing.T, scene faults.Scene, log io.Writer) faults.Result {
	t.Helper()
	var result faults.Result
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		var err error
		if result, err = faults.Play(t.Context(), scene, synctest.Wait, log); err != nil {
			t.Fatal(err)
		}
	})
	return result
}

// Whatever goes wrong, no invariant breaks.
func TestSeeds(t *testing.T) {
	began := time.Now()
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			scene := faults.Draw(seed)
			result := play(t, scene, nil)
			if !*show && len(result.Broken) == 0 {
				return
			}
			var log bytes.Buffer
			again := play(t, scene, &log)
			t.Logf("\n%s", scene)
			if *show {
				_ = os.WriteFile("/tmp/faults.log", log.Bytes(), 0o600)
			}
			for _, broken := range result.Broken {
				t.Error(broken)
			}
			if !slices.Equal(result.Broken, again.Broken) {
				t.Errorf("once more, and it is %v", again.Broken)
			}
		})
	}
	t.Logf("%v a seed", time.Since(began)/time.Duration(*seeds))
}

// TestUntilBroken plays seeds until an invariant breaks, for TestBugs.
func TestUntilBroken(t *testing.T) {
	if !*until {
		t.Skip("-until is not set")
	}
	for seed := *first; seed < *first+*seeds; seed++ {
		if broken := play(t, faults.Draw(seed), nil).Broken; len(broken) > 0 {
			for _, b := range broken {
				fmt.Printf("seed %d: %s\n", seed, b) //nolint:forbidigo // TestBugs reads it
			}
			t.FailNow()
		}
	}
}
