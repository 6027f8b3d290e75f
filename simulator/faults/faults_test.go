package faults_test

import (
	"bytes"
	"flag"
	"os"
	"os/signal"
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
)

func TestMain(m *testing.M) {
	flag.Parse()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2) // its goroutine must not be one of a bubble
	os.Exit(m.Run())
}

func play(t *testing.T, scene faults.Scene) (faults.Result, string) {
	t.Helper()
	var result faults.Result
	var log bytes.Buffer
	defer func() { _ = os.WriteFile("/tmp/faults.log", log.Bytes(), 0o600) }()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		var err error
		if result, err = faults.Play(t.Context(), scene, synctest.Wait, &log); err != nil {
			t.Fatal(err)
		}
	})
	return result, log.String()
}

// Whatever goes wrong, no invariant breaks.
func TestSeeds(t *testing.T) {
	began := time.Now()
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			scene := faults.Draw(seed)
			result, log := play(t, scene)
			if *show || len(result.Broken) > 0 {
				t.Logf("\n%s%s", scene, log)
			}
			for _, broken := range result.Broken {
				t.Error(broken)
			}
		})
	}
	t.Logf("%v a seed", time.Since(began)/time.Duration(*seeds))
}
