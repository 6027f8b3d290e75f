package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

func newVersion(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary and of the Kubernetes it embeds",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(env.Out, "lockstep %s (Kubernetes %s, %s)\n",
				buildVersion(), cluster.KubernetesVersion, runtime.Version())
			if err != nil {
				return fmt.Errorf("printing the version: %w", err)
			}
			return nil
		},
	}
}

// buildVersion is the version that the Go toolchain stamped: a tag, a commit, or "devel" for a working tree.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return strings.Trim(info.Main.Version, "()")
}
