// Command conformance-kueue writes Kueue's answers to random questions about placements.
package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-project/lockstep/simulator/policy/baseline/conformance"
)

func main() {
	// Upstream's logs are about a cluster that does not exist.
	klog.SetOutput(io.Discard)
	ctrl.SetLogger(klog.NewKlogr())
	file := flag.String("out", "", "the gzipped JSON file to write")
	seed := flag.Uint64("seed", 1, "decides the questions")
	trees := flag.Int("trees", 700, "how many trees; three questions each")
	flag.Parse()
	if err := conformance.Write(context.Background(), *file, *seed, *trees); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}
