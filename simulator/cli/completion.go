package cli

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// complete offers the values of flags, in every command that has them, to the shell's completion. Values that name
// files are the shell's to find.
func complete(root *cobra.Command) {
	values := map[string][]string{
		"fleet":      fleet.Names(),
		"mode":       {"full", "groups", "resources"},
		"kubernetes": cluster.Kubernetes(),
	}
	for _, command := range root.Commands() {
		for flag, offered := range values {
			if command.Flags().Lookup(flag) != nil {
				_ = command.RegisterFlagCompletionFunc(
					flag,
					cobra.FixedCompletions(offered, cobra.ShellCompDirectiveDefault),
				) // once
			}
		}
	}
}
