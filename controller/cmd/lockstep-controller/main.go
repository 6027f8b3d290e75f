// Command lockstep-controller turns TrainJobs into gangs and JobSets.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/release"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockstep-controller:", err)
	}
	os.Exit(code)
}

// run returns 2 for errors that the user or the cluster's administrator must mend, 1 for faults.
func run(arguments []string) (int, error) {
	options, err := config.Parse(arguments, os.Stderr)
	switch {
	case errors.Is(err, config.ErrHelp):
		return 0, nil
	case errors.Is(err, config.ErrVersion):
		_, _ = fmt.Fprintln(
			os.Stdout,
			release.Current().Line("lockstep-controller"),
		) // there is nowhere left to complain
		return 0, nil
	}
	if err != nil {
		return 2, err
	}
	logs := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logs)
	_ = logs.Set("v", strconv.Itoa(options.Verbosity))
	ctrl.SetLogger(klog.NewKlogr())
	if len(options.Unused) > 0 {
		klog.Warningf("The configuration file says what has no effect here: %s", strings.Join(options.Unused, ", "))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = controller.Run(ctx, options, metrics.Registry)
	switch {
	case errors.Is(err, gangapi.ErrNoAPI), errors.Is(err, controller.ErrNoConfig),
		errors.Is(err, controller.ErrNoCertificate), errors.Is(err, controller.ErrNoState),
		errors.Is(err, controller.ErrUnguarded), errors.Is(err, controller.ErrRival):
		return 2, err
	case err != nil:
		return 1, err
	default:
		return 0, nil
	}
}
