package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/release"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/live/support"
)

// supportOptions are the flags of lockstep support-bundle.
type supportOptions struct {
	kubeconfig, namespace, output string
}

func newSupportBundle(env Environment) *cobra.Command {
	var options supportOptions
	command := &cobra.Command{
		Use:   "support-bundle",
		Short: "Save what is needed to answer a question about a cluster, without secrets",
		Long: "Save what is needed to answer a question about a cluster to one archive: what the doctor finds, a snapshot that\n" +
			"lockstep explain reads, the objects of the installation, Events, and logs of its pods.\n\n" +
			"No Secret is read. Values of environment variables, commands and arguments of jobs, and annotations of unknown domains\n" +
			"are removed, and what has the form of a credential is replaced. Names stay: read the archive before you hand it on.\n" +
			"What you may not read is missing, and README.txt in the archive says so.",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			return runSupportBundle(command.Context(), env, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "the cluster (default $KUBECONFIG, then ~/.kube/config)")
	flags.StringVarP(
		&options.namespace,
		"namespace",
		"n",
		"",
		"namespace of Lockstep (default: where its Deployments are)",
	)
	flags.StringVarP(
		&options.output,
		"output",
		"o",
		"lockstep-support.tar.gz",
		"the archive, compressed if its name ends in .gz",
	)
	return command
}

func runSupportBundle(ctx context.Context, env Environment, options supportOptions) error {
	if options.output == "" {
		return &badinput.Error{Where: "-o", What: "no file is named", Mend: "add -o lockstep-support.tar.gz"}
	}
	config, err := clientConfig(options.kubeconfig)
	if err != nil {
		return err
	}
	snapshots, err := capture.Connect(ctx, config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	from := support.Cluster{Client: client, Dynamic: snapshots.Dynamic, Snapshots: snapshots}
	taken := env.Clock.Now()
	var bundle support.Bundle
	err = capture.Save(options.output, func(dir string, out io.Writer) error {
		bundle, err = support.Gather(ctx, from, support.Options{
			Namespace: options.namespace, Taken: taken, Version: release.Current().Version, Dir: dir,
		})
		if err != nil {
			return err
		}
		return bundle.Write(out, "lockstep-support-"+taken.UTC().Format("20060102T150405Z"), taken)
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %d files", options.output, len(bundle.Parts))
	if len(bundle.Missing) > 0 {
		text += "; could not be read:\n  " + strings.Join(bundle.Missing, "\n  ")
	}
	if _, err := fmt.Fprintln(env.Err, text); err != nil {
		return fmt.Errorf("printing what was gathered: %w", err)
	}
	return nil
}
