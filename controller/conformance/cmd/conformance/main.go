// Command conformance writes Kubeflow Trainer's renderings of the planner's cases.
package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-project/lockstep/controller/conformance"
)

func main() {
	// Upstream's logs are about a cluster that does not exist.
	klog.SetOutput(io.Discard)
	ctrl.SetLogger(klog.NewKlogr())
	cases := flag.String("cases", "", "folder of folders with a trainjob.yaml and a runtime.yaml each")
	out := flag.String("out", "", "folder for upstream.yaml and upstream-error.txt of each; may be that of the cases")
	flag.Parse()
	if err := conformance.Write(context.Background(), *cases, *out); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}
