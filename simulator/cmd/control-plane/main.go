// Command control-plane is the embedded cluster's multi-call binary: real etcd, kube-apiserver and
// kube-controller-manager in one executable, so that one link (and one download) serves all three.
// The first argument names the component, the rest are that component's own flags.
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

	"github.com/lockstep-project/lockstep/simulator/cluster/etcd"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "control-plane: name a component: etcd, kube-apiserver or kube-controller-manager")
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
	default:
		fmt.Fprintf(
			os.Stderr,
			"control-plane: unknown component %q; use etcd, kube-apiserver or kube-controller-manager\n",
			component,
		)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
