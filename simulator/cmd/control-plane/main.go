// Command control-plane is the embedded cluster's multi-call binary: real etcd, kube-apiserver, kube-controller-manager
// and stock kube-scheduler in one executable, so that one link serves all four. The first argument names the component,
// the rest are that component's own flags.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/etcd"
)

const usage = "name a component: etcd, kube-apiserver, kube-controller-manager or kube-scheduler"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "control-plane: "+usage)
		os.Exit(2)
	}
	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)

	var command *cobra.Command
	switch component {
	case "etcd":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		command = etcd.NewCommand(ctx)
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = kcm.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	default:
		fmt.Fprintf(os.Stderr, "control-plane: there is no component %q; %s\n", component, usage)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
