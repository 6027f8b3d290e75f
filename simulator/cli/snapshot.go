package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
)

// standardOutput is the file name that means standard output.
const standardOutput = "-"

// snapshotOptions are the flags of lockstep snapshot.
type snapshotOptions struct {
	kubeconfig string
	anonymize  bool
	output     string
}

func newSnapshot(env Environment) *cobra.Command {
	var options snapshotOptions
	command := &cobra.Command{
		Use:   "snapshot",
		Short: "Save what a scheduler sees of a cluster to a file",
		Long: "Save what a scheduler sees of a cluster to a file: nodes, gangs, pods, devices, volumes, TrainJobs.\n\n" +
			"Secrets, ConfigMaps and the values of environment variables are never in it. With --anonymize, names, labels,\n" +
			"images, commands and addresses have pseudonyms, and placements come out as before. Names of resources, device\n" +
			"drivers and their attributes, and the selectors of devices (CEL) stay as they are: read these before you hand\n" +
			"the file on.",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			options.kubeconfig = orHeld(env, options.kubeconfig)
			return runSnapshot(command.Context(), env, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", kubeconfigOrHeld)
	flags.BoolVar(
		&options.anonymize,
		"anonymize",
		false,
		"replace names by pseudonyms, so that the file can be handed on",
	)
	flags.StringVarP(&options.output, "output", "o", "",
		"the file, compressed if its name ends in .gz; - is standard output")
	return command
}

func runSnapshot(ctx context.Context, env Environment, options snapshotOptions) error {
	if options.output == "" {
		return &badinput.Error{Where: "-o", What: "no file is named", Mend: "add -o cluster.snapshot.json.gz"}
	}
	config, err := clientConfig(options.kubeconfig)
	if err != nil {
		return err
	}
	cluster, err := capture.Connect(ctx, config)
	if err != nil {
		return err
	}
	var manifest capture.Manifest
	take := func(dir string, out io.Writer) (err error) {
		manifest, err = capture.Take(ctx, cluster, capture.Options{
			Taken: env.Clock.Now(), Anonymize: options.anonymize, Dir: dir,
		}, out)
		return err
	}
	if options.output == standardOutput {
		err = take("", env.Out)
	} else {
		err = capture.Save(options.output, take)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(env.Err, "%s: %s\n", options.output, sizes(manifest)); err != nil {
		return fmt.Errorf("printing what was captured: %w", err)
	}
	return nil
}

// clientConfig finds the cluster as kubectl does.
func clientConfig(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	rules.WarnIfAllMissing = false
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err == nil {
		return config, nil
	}
	where := "--kubeconfig " + file
	if file == "" {
		where = strings.Join(rules.GetLoadingPrecedence(), ", ")
	}
	what := "no cluster can be found there: " + err.Error()
	if clientcmd.IsEmptyConfig(err) {
		what = "there is no kubeconfig, or it names no cluster"
	}
	return nil, &badinput.Error{
		Where: where, What: what,
		Mend: "name a kubeconfig with --kubeconfig, or in the variable KUBECONFIG",
	}
}

// sizes lists the captured kinds that have objects, and the kinds that the server does not serve.
func sizes(manifest capture.Manifest) string {
	var captured, absent []string
	for _, kind := range manifest.Kinds {
		switch {
		case kind.State == capture.Absent:
			absent = append(absent, kind.Resource)
		case kind.LeftOut > 0:
			captured = append(captured, fmt.Sprintf("%d %s (and %d that have ended, left out)",
				kind.Count, kind.Resource, kind.LeftOut))
		case kind.Count > 0:
			captured = append(captured, fmt.Sprintf("%d %s", kind.Count, kind.Resource))
		}
	}
	text := strings.Join(captured, ", ")
	if text == "" {
		text = "nothing"
	}
	if len(absent) > 0 {
		text += "; not served: " + strings.Join(absent, ", ")
	}
	return text
}
