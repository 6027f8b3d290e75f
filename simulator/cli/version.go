package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/manifests/release"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func newVersion(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary and of the Kubernetes it embeds",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if _, err := fmt.Fprintln(env.Out, versionLine()); err != nil {
				return fmt.Errorf("printing the version: %w", err)
			}
			return nil
		},
	}
}

// versionLine names the Kubernetes that up starts.
func versionLine() string {
	build := release.Current()
	build.Kubernetes = cluster.KubernetesVersion
	return build.Line("lockstep")
}
