package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/live/doctor"
)

func newDoctor(env Environment) *cobra.Command {
	var kubeconfig, output string
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether Lockstep can be installed in a cluster, in which mode, and beside whom",
		Long: "Say whether Lockstep can be installed in a cluster, in which mode, and beside whom; and where it is installed, whether it\n" +
			"works. Nothing is changed: what has to be tried is tried as a dry run.\n\n" +
			"The exit code is 0 if nothing is wrong, 1 if something is, 2 for input that cannot be used.",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			return runDoctor(command.Context(), env, kubeconfig, output)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the cluster (default $KUBECONFIG, then ~/.kube/config)")
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}

func runDoctor(ctx context.Context, env Environment, kubeconfig, output string) error {
	if output != "text" && output != "json" {
		return &badinput.Error{Where: "-o " + output, What: "there is no such format", Mend: "use text or json"}
	}
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return err
	}
	cluster, err := capture.Connect(ctx, config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	_, findings, err := doctor.Examine(ctx, client, cluster.Dynamic)
	if err != nil {
		return fmt.Errorf("%s: %w", config.Host, err)
	}
	if err := printFindings(env.Out, findings, output); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.State == doctor.Wrong }) {
		return errUnplaced
	}
	return nil
}

func printFindings(out io.Writer, findings []doctor.Finding, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(findings); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return nil
	}
	if err := doctor.Write(out, findings); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
