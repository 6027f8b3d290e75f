package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/lifecycle"
)

func newCRDs(env Environment) *cobra.Command {
	var kubeconfig string
	var apply bool
	command := &cobra.Command{
		Use:   "crds [--apply]",
		Short: "Print the CRDs, or apply them to a cluster",
		Long: "Print the CRDs, or apply them to a cluster over those that are there. Helm does not upgrade CRDs: the chart runs this command\n" +
			"before an upgrade whose CRDs differ.",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			if apply {
				return onCluster(command.Context(), env, kubeconfig, lifecycle.ApplyCRDs)
			}
			crds, err := chart.CRDs()
			if err != nil {
				return fmt.Errorf("reading the CRDs: %w", err)
			}
			return printObjects(env.Out, crds)
		},
	}
	command.Flags().BoolVar(&apply, "apply", false, "apply them to the cluster")
	command.Flags().
		StringVar(&kubeconfig, "kubeconfig", "", "the cluster (default $KUBECONFIG, the pod's, then ~/.kube/config)")
	return command
}

func newCleanup(env Environment) *cobra.Command {
	var kubeconfig string
	command := &cobra.Command{
		Use:   "cleanup",
		Short: "After an uninstall, take off what would hold PodGroups for ever",
		Long: "After an uninstall, take the finalizer off PodGroups that only lockstep-scheduler would take off. The chart runs this command\n" +
			"when it is uninstalled. Running pods are not touched; while a scheduler runs it puts the finalizer back.",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			return onCluster(command.Context(), env, kubeconfig, lifecycle.LetGo)
		},
	}
	command.Flags().
		StringVar(&kubeconfig, "kubeconfig", "", "the cluster (default $KUBECONFIG, the pod's, then ~/.kube/config)")
	return command
}

// onCluster runs an operation on a cluster, and prints its messages.
func onCluster(
	ctx context.Context,
	env Environment,
	kubeconfig string,
	do func(context.Context, dynamic.Interface, func(string)) error,
) error {
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return do(ctx, client, func(line string) { _, _ = fmt.Fprintln(env.Out, line) })
}
