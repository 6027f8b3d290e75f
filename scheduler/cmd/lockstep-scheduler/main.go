// Command lockstep-scheduler is a kube-scheduler that places whole gangs.
package main

import (
	"context"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client and work queue metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build information as a metric

	"github.com/lockstep-project/lockstep/scheduler/app"
)

func main() { os.Exit(run()) }

func run() int {
	command, clean := app.Command(context.Background())
	defer clean()
	return app.ExitCode(cli.RunNoErrOutput(command), os.Stderr)
}
